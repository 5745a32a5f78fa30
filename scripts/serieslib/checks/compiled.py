# SPDX-License-Identifier: GPL-2.0
"""What gcc with W=1 and sparse say about the objects of some directories.

The gate's build folder is copied, as W=1 changes every command line.  Each
call compiles what has changed since the last one, and remembers what was
said about every object, so that two states of a tree can be compared.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Dict, List, Optional, Sequence

from gatelib.base.errors import MACHINE, GateError
from gatelib.base.workspace import Workspace
from gatelib.kernels import build
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.tree import Tree

# Source without its suffix -> warnings without line numbers, and how often.
Said = Dict[str, "Counter[str]"]

_UNIT = re.compile(r"^  (CC|CHECK)\s+(?:\[M\]\s+)?(\S+)\.[oc]$")
_SAYS = re.compile(r"^(\S+?):\d+(?::\d+)?: (?:(?:fatal )?error|warning|info): (.*)$")


def directories(names: Sequence[str], src: Path) -> List[str]:
    """Return the directories of the kernel proper that hold the files, as make takes them."""
    found = {f"{Path(name).parent.as_posix()}/" for name in names
             if not name.startswith(("tools/", "Documentation/", "scripts/"))}
    return sorted(each for each in found if each != "./" and (src / each / "Makefile").is_file())


def parse(log: str, src: Path) -> Said:
    """Return what a log of make says about each object that it compiled.

    The log has to be of make -Otarget, which keeps the lines of one object together.
    """
    said: Said = {}
    unit = ""
    for line in log.split("\n"):
        begin = _UNIT.match(line)
        if begin:
            unit = _relative(begin.group(2), src)
            said.setdefault(unit, Counter())
            continue
        found = _SAYS.match(line)
        if found and unit:
            said[unit][f"{_relative(found.group(1), src)}: {found.group(2)}"] += 1
    return said


def _relative(name: str, src: Path) -> str:
    return name[len(str(src)) + 1:] if name.startswith(f"{src}/") else name


def new(before: Said, after: Said) -> Dict[str, List[str]]:
    """Return object -> the warnings that there are more of after than before."""
    found = {unit: sorted((said - before.get(unit, Counter())).elements())
             for unit, said in after.items()}
    return {unit: lines for unit, lines in found.items() if lines}


class Watcher:
    """The objects of one tree and flavour."""

    def __init__(self, tree: Tree, flavour: str, dirs: Sequence[str], work: Workspace) -> None:
        self._tree = tree
        self._flavour = flavour
        self._dirs = list(dirs)
        self._work = work
        self._where = tree.folder / f"check-{flavour}"
        self._said: Optional[Said] = None

    def look(self, log: Path) -> Said:
        """Compile the tree as it is now; return what is said about all objects so far.

        The gate's build folder has to be built.  Raises GateError if an
        object cannot be compiled.
        """
        source = build.folder(self._tree, self._flavour)
        if self._said is None:
            shutil.rmtree(self._where, ignore_errors=True)
            shutil.copytree(source, self._where, symlinks=True)
            for each in self._dirs:
                for path in (self._where / each).rglob("*.o"):
                    path.unlink()
            self._said = {}
        write_blob(self._where / ".config", Blob((source / ".config").read_bytes()))
        log.unlink(missing_ok=True)
        argv = ["make", "-C", str(self._tree.src), f"O={self._where}", f"ARCH={self._flavour}",
                "W=1", "C=1", "-Otarget", f"-j{self._work.jobs}",
                *self._dirs]
        if self._dirs and self._work.run(argv, log) != 0:
            raise GateError(MACHINE, "the objects do not compile with W=1 C=1",
                            "look for the reason", log=log)
        text = log.read_text("utf-8", "replace") if self._dirs else ""
        self._said = {**self._said, **parse(text, self._tree.src)}
        return self._said
