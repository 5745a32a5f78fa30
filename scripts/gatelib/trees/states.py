# SPDX-License-Identifier: GPL-2.0
"""What each state makes of a tree: its fixes, and the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, NamedTuple, Sequence, Set

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.trees import FIXES, KNOWN
from gatelib.trees import insertion
from gatelib.trees.files import Files
from gatelib.trees.patches import Patches
from gatelib.trees.tree import Tree


class State(NamedTuple):
    """A tree as one state wants it."""
    name: str			# one of data.trees.STATES
    found: Dict[str, str]	# fix id -> its form in the tree as it came; empty: nobody looked
    files: Files		# every file that the gate may change


def touched(root: Path, patches: Patches) -> Set[str]:
    """Return the names of all files that a state may change; root: the project."""
    return patches.touched() | insertion.touched(root)


def state_of(tree: Tree, name: str, tests: str, root: Path, patches: Patches) -> State:
    """Return what the state makes of a prepared tree.

    tests: one of data.trees.TESTS.  root: the project.
    Raises GateError if a fix is needed and does not fit, or there is no place for the tests.
    """
    if name == "as-is":
        files: Files = {each: tree.lookup(each) for each in sorted(patches.touched())}
        found: Dict[str, str] = {}
    else:
        found, _, files = patches.plan(name, tree.lookup, tree.version.series)
    if tests == "tree":
        return State(name, found, insertion.keep(files, tree.lookup, root))
    return State(name, found, insertion.add(files, tree.lookup, root))


def expectations_of(tree: Tree, state: str, named: Sequence[str]) -> Sequence[str]:
    """Return the names of the expectations that hold in the state, but for those of flavours.

    named: what the user named, for the tree as it is.
    """
    if state == "broken":
        return [f"{fix.id}-absent" for fix in FIXES]
    if state == "upstream":
        return [name for fix in FIXES for name in fix.upstream]
    if state == "fixed":
        return []
    return [*named] if named else known(tree)


def known(tree: Tree) -> Sequence[str]:
    """Return the names of what Debian's series are known to fail, nothing for other trees."""
    if not tree.packaged:
        return []
    wanted = _number(tree.version.series)
    older = [series for series in KNOWN if _number(series) <= wanted]
    if not older:
        raise GateError(UNUSABLE, f"nothing is known of {tree.name} as it is",
                        "say what fails there with --expect")
    return KNOWN[max(older, key=_number)]


def _number(series: str) -> Sequence[int]:
    return [int(part) for part in series.split(".")]
