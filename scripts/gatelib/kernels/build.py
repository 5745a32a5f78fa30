# SPDX-License-Identifier: GPL-2.0
"""From a patched tree to a kernel, one build folder a flavour."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List

from gatelib.base import proc
from gatelib.base.errors import UNUSABLE, GateError, Interrupted, blamed
from gatelib.base.workspace import Workspace
from gatelib.data.kernels import FRAGMENTS, IMAGES, KCONFIG_ADD_UM, SPACE_BUILD
from gatelib.kernels import identity
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.tree import Tree

_OPTION = re.compile(r"^(?:(CONFIG_\w+)=(.+)|# (CONFIG_\w+) is not set)$")
_NOT_TAKEN = re.compile(r"^Missing: (.*)$", re.M)
_TELLING = re.compile(r"\berror\b|\*\*\*|undefined reference|fatal:|warning: ")


def folder(tree: Tree, flavour: str) -> Path:
    """Return the build folder of a flavour."""
    return tree.folder / f"build-{flavour}"


def image(tree: Tree, flavour: str) -> Path:
    """Return the kernel that a build makes."""
    return folder(tree, flavour) / IMAGES[flavour]


def build(tree: Tree, flavour: str, work: Workspace, log: Path, ident: str = "") -> Path:
    """Configure and build the tree as it is now; return the kernel.

    log: where the output goes.  ident: what goes into its version line, and
    into the build IDs of its modules; without it make counts builds.
    Raises GateError if it fails.
    """
    if ident:
        work = work._replace(env=identity.build_env(work.env, ident))
    where = folder(tree, flavour)
    where.mkdir(parents=True, exist_ok=True)
    proc.need_space(where, SPACE_BUILD, "a build")
    log.unlink(missing_ok=True)
    with _marked(where):
        if flavour == "um":
            _build_um(tree, where, work, log)
        else:
            _build_x86_64(tree, where, work, log, ident)
    made = image(tree, flavour)
    if not made.is_file():
        raise blamed("build", f"the build made no {IMAGES[flavour]}", "see the end of its log",
                     log=log, tail=proc.tail(log))
    return made


@contextmanager
def _marked(where: Path) -> Iterator[None]:
    """Keep a mark in the build folder while a build runs.

    make removes what it was writing when it ends on SIGTERM.  If it was
    killed harder than that, the mark is still there at the next build, and
    all that was written since the mark is made anew.
    """
    mark = where / ".gate-building"
    if mark.exists():
        since = mark.stat().st_mtime
        for parent, _, names in os.walk(where):
            for name in names:
                path = Path(parent, name)
                if path != mark and path.lstat().st_mtime >= since:
                    path.unlink()
    mark.touch()
    try:
        yield
    except Interrupted as err:
        if err.clean:
            mark.unlink()
        raise
    except Exception:
        mark.unlink()
        raise
    mark.unlink()


def _failed(log: Path) -> GateError:
    lines = proc.tail(log, 400).splitlines()
    telling = [line for line in lines if _TELLING.search(line)]
    return blamed("build", "the build failed", "see the compiler's last lines above",
                  log=log, tail="\n".join((telling or lines)[-10:]))


def _build_um(tree: Tree, where: Path, work: Workspace, log: Path) -> None:
    (fragment,) = FRAGMENTS["um"]
    argv = [str(tree.src / "tools" / "testing" / "kunit" / "kunit.py"), "build",
            f"--build_dir={where}", f"--kunitconfig={work.root / fragment}",
            f"--jobs={work.jobs}"]
    argv += [f"--kconfig_add={option}" for option in KCONFIG_ADD_UM]
    if work.run(argv, log, cwd=tree.src) == 0:
        return
    lost = _NOT_TAKEN.search(log.read_text("utf-8", "replace"))
    if lost:
        raise _not_taken(lost.group(1).split(", "), log)
    raise _failed(log)


def _not_taken(options: List[str], log: Path) -> GateError:
    return GateError(UNUSABLE, "the tree's Kconfig does not take " + ", ".join(options),
                     "mend the configuration fragment or choose another tree", log=log,
                     cause="build")


def merged(root: Path, flavour: str) -> Dict[str, str]:
    """Return the options that the flavour's fragments ask for, "n" for those to be off."""
    wanted: Dict[str, str] = {}
    for name in FRAGMENTS[flavour]:
        try:
            text = (root / name).read_text("utf-8")
        except OSError as err:
            raise GateError(UNUSABLE, f"cannot read {root / name}: {err.strerror}",
                            "check out the whole project") from err
        wanted.update(options(text))
    return wanted


def options(text: str) -> Dict[str, str]:
    """Return the options that a configuration or fragment sets, "n" for those not set."""
    found: Dict[str, str] = {}
    for line in text.splitlines():
        match = _OPTION.match(line.strip())
        if match:
            found[match.group(1) or match.group(3)] = match.group(2) or "n"
    return found


def _build_x86_64(tree: Tree, where: Path, work: Workspace, log: Path, ident: str) -> None:
    wanted = merged(work.root, "x86_64")
    fragment = where / ".gate-config"
    text = "".join(f"{key}={value}\n" for key, value in wanted.items())
    write_blob(fragment, Blob(text.encode()))
    make = ["make", "-C", str(tree.src), f"O={where}", "ARCH=x86_64"]
    if ident:
        make.append(f"LDFLAGS_MODULE=--build-id=0x{ident}")
    # Kconfig leaves .config alone where nothing changes, so this costs a second.
    work.must([*make, "allnoconfig"], log, "the kernel could not be configured",
               "look for the reason", env=dict(work.env, KCONFIG_ALLCONFIG=str(fragment)))
    got = options((where / ".config").read_text("utf-8", "replace"))
    lost = [f"{key}={value}" for key, value in wanted.items() if got.get(key, "n") != value]
    if lost:
        raise _not_taken(lost, log)
    goals = ["bzImage"] + (["modules"] if got.get("CONFIG_MODULES") == "y" else [])
    if work.run([*make, f"-j{work.jobs}", *goals], log) != 0:
        raise _failed(log)
