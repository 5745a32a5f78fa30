# SPDX-License-Identifier: GPL-2.0
"""Which build is meant, and whether it is the one at hand.

A build system, a compiler cache or a file with a wrong time can give another
kernel than the one that was asked for: ccache, for one, does not look at what
.incbin takes in, and so can put an older compressed kernel into a bzImage of
the same size.  Therefore every kernel carries a hash of all that it should be
made from in its version line, every module and test program in its build ID,
and what runs is held against it.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from typing import Iterable, List, Mapping, Optional, Tuple

from gatelib.base import proc
from gatelib.base.errors import blamed
from gatelib.base.workspace import Workspace
from gatelib.data.kernels import FRAGMENTS, KCONFIG_ADD_UM
from gatelib.data.tests import SELFTESTS_DIR
from gatelib.trees.files import Files
from gatelib.trees.tree import Tree

_BANNER = re.compile(r"^Linux version \S+ \(.*\) (#.*)$")
_BUILD_ID = re.compile(r"^\s*Build ID: ([0-9a-f]+)$", re.M)
# Every build of the same sources is to have the same bytes.
TIMESTAMP = "Thu Jan  1 00:00:00 UTC 1970"


def kernel_id(tree: Tree, files: Files, flavour: str, work: Workspace) -> str:
    """Return 16 hexadecimal digits for a kernel: tree, files of its state, configuration, tools.

    files: what the state changes in the tree.
    """
    config = [(work.root / name).read_bytes() for name in FRAGMENTS[flavour]]
    mine = {name: blob for name, blob in files.items() if not name.startswith(f"{SELFTESTS_DIR}/")}
    return _hash(flavour, tree.content(), files_digest(mine), *KCONFIG_ADD_UM, *config,
                 toolchain(work.env))


def tests_id(tree: Tree, files: Files, work: Workspace) -> str:
    """Return the same for the programs of the selftests."""
    return _hash("selftests", tree.content(), tests_digest(files), toolchain(work.env))


def tests_digest(files: Files) -> str:
    """Return a hash of the selftests' sources in files."""
    return files_digest({name: blob for name, blob in files.items()
                    if name.startswith(f"{SELFTESTS_DIR}/")})


def files_digest(files: Files) -> str:
    """Return 16 hexadecimal digits for names, modes and bytes of the files."""
    whole = hashlib.sha256()
    for name in sorted(files):
        blob = files[name]
        whole.update(f"{name}\0{blob.executable if blob else None}\0".encode())
        whole.update(hashlib.sha256(blob.data if blob else b"").digest())
    return whole.hexdigest()[:16]


def _hash(*parts: "str | bytes") -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(hashlib.sha256(part if isinstance(part, bytes)
                                    else part.encode("utf-8", "surrogateescape")).digest())
    return whole.hexdigest()[:16]


def toolchain(env: Mapping[str, str]) -> str:
    """Return compiler and linker as they call themselves, one line."""
    return _toolchain(tuple(sorted(env.items())))


@functools.lru_cache(maxsize=None)
def _toolchain(env: Tuple[Tuple[str, str], ...]) -> str:
    said = [proc.capture([program, "--version"], env=dict(env)).stdout.decode("utf-8", "replace")
            for program in ("gcc", "ld")]
    return ", ".join(text.splitlines()[0] if text else "unknown" for text in said)


def build_env(env: Mapping[str, str], ident: str) -> Mapping[str, str]:
    """Return the environment in which the kernel build puts ident into the version line."""
    return dict(env, KBUILD_BUILD_VERSION=ident, KBUILD_BUILD_TIMESTAMP=TIMESTAMP)


def running(lines: Iterable[str]) -> Optional[str]:
    """Return the version that a kernel says it is on its console, "#..." and what follows.

    lines: without time stamps.  None if it says nothing; if two kernels spoke, both.
    """
    found = [banner.group(1) for banner in map(_BANNER.match, lines) if banner]
    return " and ".join(dict.fromkeys(found)) if found else None


def same(version: Optional[str], ident: str) -> bool:
    """Return whether the version, as uname -v gives it, is that of the build ident."""
    return (version is not None and version.split()[:1] == [f"#{ident}"]
            and " and #" not in version)


def complaint(version: Optional[str], ident: str) -> str:
    """Return what is wrong with a running kernel's version, "" if it is the build ident."""
    if same(version, ident):
        return ""
    if version is None:
        return (f"the kernel did not say which one it is, build #{ident} was meant; see whether "
                "its console works")
    return (f"another kernel ran: {proc.printable(version)} instead of #{ident}; remove the build "
            "folder in the cache and try again")


def is_of(path: Path, ident: str, env: Mapping[str, str]) -> bool:
    """Return whether the module or program in path was linked as part of the build ident."""
    return _notes(path, env) == [ident]


def check_elf(path: Path, ident: str, env: Mapping[str, str]) -> None:
    """Raise GateError unless the module or program in path was linked as part of build ident."""
    notes = _notes(path, env)
    if notes != [ident]:
        raise blamed("harness", f"{path} is of build {notes[0] if notes else '(none)'} instead of "
                     f"{ident}", "remove the build folder in the cache and try again")


def _notes(path: Path, env: Mapping[str, str]) -> List[str]:
    said = proc.capture(["readelf", "-n", str(path)], env=env).stdout.decode("utf-8", "replace")
    return _BUILD_ID.findall(said)
