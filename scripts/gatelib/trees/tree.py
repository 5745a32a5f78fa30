# SPDX-License-Identifier: GPL-2.0
"""Kernel trees in the cache, and how they change from one state to another.

A tree from a Debian package and a mirror of a tree of the user's look the
same from outside: a work tree "src" that only ever differs from the original
in the files that the patches touch.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Optional, Set

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.trees import OLDEST, SPACE_TREE
from gatelib.trees import aptsrc
from gatelib.trees.content import content_hash
from gatelib.trees.files import Blob, Files, read_blob, write_blob

_SERIES = re.compile(r"([0-9]+)\.([0-9]+)")
_PROOF = ("Kbuild", "Kconfig", "kernel/time/tick-sched.c", "kernel/trace/trace_hwlat.c",
          "tools/testing/kunit/kunit.py")
# The files at a tree's top that a build reads.
_TOP = ("Kbuild", "Kconfig", "Makefile", "COPYING", "CREDITS", "MAINTAINERS", "README")
_PATH_HINT = "give a series as 6.12, or a git checkout or unpacked kernel of 6.1 or later"


class Version(NamedTuple):
    """A kernel's version, from its top Makefile."""
    series: str		# "6.12"
    full: str		# "6.12.117"


def read_version(folder: Path) -> Version:
    """Return the version of the kernel tree in folder.

    Raises GateError if it is no kernel tree, or one that is too old.
    """
    try:
        text = (folder / "Makefile").read_text("utf-8", "replace")[:4096]
    except OSError:
        text = ""
    fields = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", text, re.M))
    series = f"{fields.get('VERSION')}.{fields.get('PATCHLEVEL')}"
    if not _SERIES.fullmatch(series):
        raise GateError(UNUSABLE, f"{folder} is no kernel tree", _PATH_HINT)
    check_series(series)
    absent = [name for name in _PROOF if not (folder / name).is_file()]
    if absent:
        raise GateError(UNUSABLE, f"{folder} is no complete kernel tree: {absent[0]} is missing",
                        _PATH_HINT)
    full = f"{series}.{fields.get('SUBLEVEL') or '0'}{fields.get('EXTRAVERSION', '')}"
    return Version(series, full)


def check_series(series: str) -> None:
    """Raise GateError if the kernel series is older than the tests can be."""
    major, minor = (int(part) for part in series.split("."))
    if (major, minor) < OLDEST:
        raise GateError(UNUSABLE, f"kernel {series} is older than {OLDEST[0]}.{OLDEST[1]}",
                        "choose a newer one")


class Tree:
    """A kernel tree: the original, and its work tree in the cache."""

    packaged = False	# by Debian

    def __init__(self, name: str, folder: Path) -> None:
        """name: what the user called it.  folder: its place in the cache."""
        self.name = name
        self.folder = folder
        self.src = folder / "src"
        self.origin = ""
        self.version = Version("", "")

    def lookup(self, name: str) -> Optional[Blob]:
        """Return a file as the original has it, None if it has none."""
        raise NotImplementedError

    def prepare(self, work: Workspace, touched: Set[str]) -> None:
        """Bring the work tree into being or up to date; touched: files patches touch."""
        raise NotImplementedError

    def inspect(self, work: Workspace) -> None:
        """Do what lookup() needs, and no more."""
        raise NotImplementedError

    def content(self) -> str:
        """Return what tells the original from others: a package's version, or a hash.

        Raises GateError if prepare() was not called.
        """
        raise NotImplementedError

    def describe(self, work: Workspace) -> str:
        """Return what people call the original: git's description, or what content() says."""
        return self.content()

    def switch(self, files: Files) -> List[str]:
        """Make the work tree what files says; return the names of those written.

        Only files that differ are written, so that make builds only what
        depends on them; after an interruption the next switch does the rest.
        """
        written = []
        for name in sorted(files):
            path = self.src / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if write_blob(path, files[name]):
                written.append(name)
        return written


class PackageTree(Tree):
    """Debian's linux-source-X.Y."""

    packaged = True

    def __init__(self, series: str, cache: Path) -> None:
        super().__init__(series, cache / "trees" / series)
        self._orig = self.folder / "orig"	# files as they came, once something changed them
        self._none = self.folder / "none"	# empty marks for files that it came without

    def lookup(self, name: str) -> Optional[Blob]:
        if (self._none / name).exists():
            return None
        saved = read_blob(self._orig / name)
        return saved if saved is not None else read_blob(self.src / name)

    def inspect(self, work: Workspace) -> None:
        if not self.src.is_dir():
            self._unpack(work)
        try:
            self.version = read_version(self.src)
            self.origin = (self.folder / "package").read_text("utf-8", "replace").strip()
        except (GateError, OSError) as err:
            raise GateError(MACHINE, f"{self.folder} in the cache is damaged: {err}",
                            "remove that folder and try again") from err

    def prepare(self, work: Workspace, touched: Set[str]) -> None:
        self.inspect(work)

    def content(self) -> str:
        return self.origin

    def switch(self, files: Files) -> List[str]:
        for name in files:
            self._save(name)
        wanted = dict(files)
        for folder in (self._orig, self._none):
            for path in folder.rglob("*"):
                name = str(path.relative_to(folder))
                if path.is_file() and name not in wanted and not name.endswith(".gate-new"):
                    # An earlier version of the patches touched it.
                    wanted[name] = self.lookup(name)
        return super().switch(wanted)

    def _save(self, name: str) -> None:
        if (self._none / name).exists() or (self._orig / name).exists():
            return
        blob = read_blob(self.src / name)
        if blob is None:
            write_blob(self._none / name, Blob(b""))
        else:
            write_blob(self._orig / name, blob)

    def _unpack(self, work: Workspace) -> None:
        package = f"linux-source-{self.name}"
        with work.progress.stage(f"{self.name}: get package {package}"):
            proc.need_space(work.cache, SPACE_TREE, "unpacking a kernel")
            deb = aptsrc.fetch(self.name, work)
        log = work.out / f"{package}-unpack.log"
        log.unlink(missing_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        todo = f"remove {deb} if it is damaged and try again"
        with work.progress.stage(f"{self.name}: unpack {deb.name}"), \
                tempfile.TemporaryDirectory(dir=self.folder, prefix="unpack-") as name:
            temp = Path(name)
            work.must(["dpkg", "-x", str(deb), str(temp)], log, f"cannot unpack {deb.name}", todo)
            tarball = temp / "usr" / "src" / f"{package}.tar.xz"
            work.must(["tar", "-x", "-I", "xz -T0", "-f", str(tarball), "-C", str(temp)], log,
                       f"cannot unpack {tarball.name} of {deb.name}", todo)
            if not (temp / package / "Makefile").is_file():
                raise GateError(MACHINE, f"{deb.name} holds no folder {package}", todo, log=log)
            write_blob(self.folder / "package",
                       Blob(f"{package} {aptsrc.version_of(deb)}\n".encode()))
            os.rename(temp / package, self.src)


class PathTree(Tree):
    """A tree of the user's, which is read and never written."""

    def __init__(self, path: str, cache: Path) -> None:
        self.original = Path(path).resolve()
        key = hashlib.sha256(os.fsencode(self.original)).hexdigest()[:12]
        base = re.sub(r"[^\w.-]", "_", self.original.name)	# make takes no spaces and colons
        super().__init__(path, cache / "trees" / f"path-{base}-{key}")
        self.origin = str(self.original)
        self.version = read_version(self.original)
        self._content = ""

    def content(self) -> str:
        return self._content

    def describe(self, work: Workspace) -> str:
        if not (self.original / ".git").exists():
            return self._content
        done = proc.capture(["git", "-c", "safe.directory=*", "describe", "--always", "--dirty",
                             "--tags"], env=work.env, cwd=self.original)
        said = done.stdout.decode("utf-8", "replace").strip()
        return f"{said} {self._content}" if done.returncode == 0 and said else self._content

    def lookup(self, name: str) -> Optional[Blob]:
        try:
            return read_blob(self.original / name)
        except OSError as err:
            raise GateError(UNUSABLE, f"cannot read {self.original / name}: {err.strerror}",
                            "mend that or choose another tree") from err

    def inspect(self, work: Workspace) -> None:
        pass

    def prepare(self, work: Workspace, touched: Set[str]) -> None:
        self._refuse_links(touched)
        with work.progress.stage(f"{self.name}: mirror into the cache"):
            if not self.src.is_dir():
                proc.need_space(work.cache, SPACE_TREE, "a mirror of the tree")
            self.src.mkdir(parents=True, exist_ok=True)
            self._mirror(work, touched)
            self._content = content_hash(self.src, self.folder / "content.json", touched)

    def _refuse_links(self, touched: Set[str]) -> None:
        """Raise GateError if a file in touched is a symbolic link or reached by one.

        The mirror has the folder's link as well, and a file would be written
        through it; of a file's link it would have a copy.
        """
        for folder in sorted({str(up) for name in touched for up in Path(name).parents}):
            if (self.original / folder).is_symlink():
                raise GateError(UNUSABLE, f"the folder {folder} of {self.original} is a symbolic "
                                "link, through which patches would get out of the mirror",
                                "put the folder itself there")
        for name in sorted(touched):
            if (self.original / name).is_symlink():
                raise GateError(UNUSABLE, f"the file {name} of {self.original} is a symbolic "
                                "link, and the gate would write there",
                                "put the file itself there")

    def _mirror(self, work: Workspace, touched: Set[str]) -> None:
        log = work.out / f"{self.folder.name}-mirror.log"
        log.unlink(missing_ok=True)
        unsure = self.folder / "mirroring"	# there while src is between two states
        stamp = self.folder / "mirrored"
        stale = unsure.exists()
        unsure.touch()
        since = stamp.stat().st_mtime if stamp.exists() else 0.0
        excludes = self.folder / "excludes"
        names = sorted(touched) + self._products(work)
        excludes.write_bytes(b"".join(os.fsencode(f"/{each}") + b"\0" for each in
                                      (".git", *map(_literal, names))))
        # Without a window of -1, two times in the same second are the same.
        work.must(["rsync", "-a", "--delete", "--modify-window=-1", "--out-format=%i %n",
                    "--from0", f"--exclude-from={excludes}",
                    f"{self.original}/", f"{self.src}/"], log,
                   f"cannot mirror {self.original} into the cache",
                   "make it readable and try again", status=UNUSABLE)
        if stale or self._came_with_old_times(log, since):
            for build in self.folder.glob("build-*"):
                shutil.rmtree(build)
        stamp.touch()
        unsure.unlink()

    def _came_with_old_times(self, log: Path, since: float) -> bool:
        """Return whether a file changed whose time make would not take as newer.

        That is so when another release is unpacked over the user's tree: what
        was built from the old files then looks up to date.
        """
        for line in log.read_text("utf-8", "replace").splitlines():
            flags, _, name = line.partition(" ")
            if flags.startswith(">f") and not flags.endswith("+++++++++"):
                try:
                    if (self.src / name).lstat().st_mtime <= since:
                        return True
                except OSError:
                    return True
        return False

    def _products(self, work: Workspace) -> List[str]:
        """Return what the tree's own .gitignore files call build products."""
        listing = ["ls-files", "-o", "-i", "-z", "--exclude-standard", "--directory"]
        git = ["git", "-c", "safe.directory=*"]
        if (self.original / ".git").exists():
            done = proc.capture([*git, *listing], env=work.env, cwd=self.original)
            if done.returncode == 0:
                return _names(done.stdout)
        # No repository: an empty one beside it makes git read the .gitignore files.
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="git-") as repo:
            proc.capture([*git, "init", "-q", "--bare", repo], env=work.env)
            words = [*git, f"--git-dir={repo}", f"--work-tree={self.original}", *listing]
            done = proc.capture(words, env=work.env, cwd=self.original)
            if _PROOF[0] in _names(done.stdout):
                # Debian's source packages have it ignore all that is at the top.
                words += [word for each in (*_TOP, "*/") for word in ("-x", f"!/{each}")]
                done = proc.capture(words, env=work.env, cwd=self.original)
        if done.returncode != 0:
            raise GateError(MACHINE, f"git cannot list build products in {self.original}: "
                            + done.stderr.decode("utf-8", "replace"),
                            "clean the tree with make mrproper")
        # Without an index, files that the kernel keeps although it ignores
        # them are in the list as well; the ones with a leading dot matter to none.
        return _names(done.stdout)


def _names(listing: bytes) -> List[str]:
    return [os.fsdecode(name) for name in listing.split(b"\0") if name]


def _literal(name: str) -> str:
    """Return the name as an rsync pattern that matches nothing else."""
    return re.sub(r"([\\*?\[])", r"\\\1", name) if re.search(r"[*?\[]", name) else name


def path_of(spec: str) -> Optional[Path]:
    """Return the folder that spec names, None if it names a series or nothing."""
    if _SERIES.fullmatch(spec) or not spec or not Path(spec).is_dir():
        return None
    return Path(spec).resolve()


def open_tree(spec: str, cache: Path) -> Tree:
    """Return the tree that the user calls spec: a series as "6.12", or a path.

    Raises GateError if it cannot be one.
    """
    if _SERIES.fullmatch(spec):
        check_series(spec)
        return PackageTree(spec, cache)
    if path_of(spec) is None:
        raise GateError(UNUSABLE, f"{spec!r} is no folder and no kernel series", _PATH_HINT)
    return PathTree(spec, cache)
