# SPDX-License-Identifier: GPL-2.0
"""Which patches a tree in some state gets: found out by trying them on its files."""

from __future__ import annotations

from pathlib import Path
from typing import List, NamedTuple

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.trees import FIXES, Fix
from gatelib.trees.files import Files
from gatelib.trees.patches import OURS, UPSTREAM, DoesNotApply, PatchSet, Patches, Plan
from gatelib.trees.tree import Tree


class Series(NamedTuple):
    """A series for a tree in a state: the base it stands on, and its patches."""
    tree: Tree
    state: str
    plan: Plan			# the state, without the tests
    set: str			# folder below patches/
    patches: List[Path]
    left_out: List[Path]	# fixes that the base has already
    steps: List[Files]		# the files with no patch, with the first, ... with all

    @property
    def name(self) -> str:
        return f"{self.tree.name} {self.state}"


def choose(tree: Tree, state: str, patches: Patches) -> Series:
    """Return the first set that applies to the tree in the state, without what it has.

    tree: one that was prepared.  Raises GateError, naming patch, file and
    hunk, if none applies.
    """
    plan = patches.plan(state, tree.lookup, tree.version.series)
    complaint = ""	# of the set that is closest
    for each in patches.ordered(tree.version.series):
        wanted = _wanted(each, plan)
        if wanted is None:
            continue
        try:
            steps = [plan.files]
            for patch in wanted:
                steps.append(patches.apply([patch], steps[-1]))
        except DoesNotApply as err:
            complaint = complaint or str(err)
            continue
        left = [path for fix in FIXES for path in each.fixes[fix.id] if path not in wanted]
        return Series(tree, state, plan, each.name, wanted, left, steps)
    complaint = complaint or "no set has patches for what is missing"
    raise GateError(UNUSABLE, f"no series fits {tree.name} {state}: {complaint}",
                    "rebase a set on this tree or choose another tree or state")


def _there(fix: Fix, plan: Plan) -> bool:
    """Return whether the base has all that the fix's patches would bring."""
    have = plan.present[fix.id]
    return have == OURS or (have == UPSTREAM and fix.same_as_upstream)


def _wanted(each: PatchSet, plan: Plan) -> "List[Path] | None":
    """Return the set's patches for this base, None if it has none for a fix."""
    wanted: List[Path] = []
    for fix in FIXES:
        if _there(fix, plan):
            continue
        if not each.fixes[fix.id]:
            return None
        wanted += each.fixes[fix.id]
    return sorted(wanted + each.tests, key=lambda path: path.name)
