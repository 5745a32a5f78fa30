# SPDX-License-Identifier: GPL-2.0
"""All checks, one tree and state after the other."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from gatelib.bench import Bench
from gatelib.errors import HOLDS, UNUSABLE, GateError
from gatelib.patches import DoesNotApply, Patches, touched
from gatelib.tables import PATCH_SETS
from gatelib.trees import Tree

from . import b4run, export, mails, sets, static, tooling
from .b4run import Mails
from .choose import Choice, choose
from .git import Git
from .tables import COVER
from .tally import Finding, Tally
from .walk import Walk

# What a user can choose with --only, in the order of the work.
GROUPS = ("files", "mails", "tools", "builds")
# With all fixes taken out a tree gets the whole series; as it is, what it lacks.
_STATES = ("broken", "as-is")


class Wish(NamedTuple):
    """What the user asked for."""
    groups: Sequence[str]	# of GROUPS
    flavours: Sequence[str]


def check(trees: Sequence[Tree], wish: Wish, bench: Bench) -> int:
    """Check the sets, and the series of every tree; return the exit status.

    A tree that cannot be judged does not keep the others from being so.
    """
    tally = Tally(bench.progress)
    status = HOLDS
    if "files" in wish.groups:
        tally.judge("patches/", "nothing else in it", [
            Finding(f"{name} belongs to no set", "remove it, or add its set to PATCH_SETS")
            for name in sets.strangers(bench.root)])
        for name in PATCH_SETS:
            with tally.stage(f"set {name}: files"):
                static.check_set(bench.root, name, bench.env, bench.cache / "tmp", tally)
    for tree in trees:
        try:
            _tree(tree, wish, bench, tally)
        except GateError as err:
            if err.tail:
                print(err.tail, file=sys.stderr)
            print(f"series: {err.line()}", file=sys.stderr, flush=True)
            status = max(status, err.status)
            if err.fatal:
                break
    bench.progress.say(tally.line())
    return max(status, tally.status())


def _tree(tree: Tree, wish: Wish, bench: Bench, tally: Tally) -> None:
    """Check every series of one tree."""
    patches = Patches(bench.root / "patches", bench.env, bench.cache / "tmp")
    tree.prepare(bench, patches.touched())
    with tempfile.TemporaryDirectory(dir=bench.cache / "tmp", prefix="check-") as temp:
        walk = Walk(tree, bench, Path(temp), wish.flavours)
        done: List[Choice] = []
        for state in _STATES:
            try:
                choice = choose(tree, state, patches)
            except GateError as err:
                if err.status != UNUSABLE:
                    raise
                tally.judge(f"{tree.name} {state}", "a series applies",
                            [Finding(err.what, err.todo)])
                continue
            if any(each.steps == choice.steps for each in done):
                continue	# the tree has no fix, so this is the same series
            done.append(choice)
            where = Path(temp) / state
            where.mkdir()
            tests_apply(choice, patches, tally)
            _series(choice, wish, where, bench, tally)
            if "builds" in wish.groups:
                walk.series(choice, tally)


def tests_apply(choice: Choice, patches: Patches, tally: Tally) -> None:
    """Check that the set's tests apply to the base with no fix, and with all of them."""
    each = next(found for found in patches.sets if found.name == choice.set)
    fixes = [path for path in choice.patches if path not in each.tests]
    none: List[Path] = []
    for what, first in (("without the fixes", none), ("with the fixes", fixes)):
        found: List[Finding] = []
        try:
            patches.apply([*first, *each.tests], choice.plan.files)
        except DoesNotApply as err:
            found = [Finding(str(err), "rebase the test patch so that it needs no fix")]
        tally.judge(choice.name, f"tests apply {what}", found)


def _series(choice: Choice, wish: Wish, temp: Path, bench: Bench, tally: Tally) -> None:
    """Check the mails of one series and what the tree's tools say of them."""
    if not {"mails", "tools"} & set(wish.groups):
        return
    with tally.stage(f"{choice.name}: git repository with set {choice.set}"):
        git, base = export.applied(choice, temp / "series", bench)
    sender = mails.author(choice.patches)
    made = export.compose(choice, git, base, bench, sender)
    mails.save(made, temp / "mails")
    if "mails" in wish.groups:
        with tally.stage(f"{choice.name}: git am, b4 am, b4 shazam, b4 send"):
            _mails(Mails(choice, base, temp / "mails", temp), sender, bench, tally)
        _range_diff(choice, git, base, bench)
    if "tools" in wish.groups:
        with tally.stage(f"{choice.name}: checkpatch, kernel-doc"):
            _tools(choice, made, temp / "mails", git, bench, tally)


def _mails(given: Mails, sender: str, bench: Bench, tally: Tally) -> None:
    reference = b4run.git_am(given, bench, tally)
    checks = {"b4 am": b4run.b4_am, "b4 shazam": b4run.b4_shazam, "b4 send": b4run.b4_send}
    for name, run in checks.items():
        if reference is None:
            tally.skip(given.choice.name, name, "git am does not take the mails")
        else:
            run(given, reference, sender, bench, tally)


def _range_diff(choice: Choice, git: Git, base: str, bench: Bench) -> None:
    """Write what changed since each older version that is kept in patches/SET/vN."""
    folder = bench.root / "patches" / choice.set
    for old in sorted(path for path in folder.glob("v[0-9]*") if path.name[1:].isdigit()):
        ref = mails.previous(bench.root, choice, git, base, int(old.name[1:]) + 1)
        if ref is not None:
            text = git.run("range-diff", "--no-color", f"{base}..{ref}", f"{base}..series")
            log = bench.out / f"{choice.tree.folder.name}-{choice.state}-{old.name}.range-diff"
            log.write_bytes(text)
            bench.progress.say(f"{choice.name}: what changed since {old.name} is in {log}")


def _tools(choice: Choice, made: Dict[str, bytes], folder: Path, git: Git, bench: Bench,
           tally: Tally) -> None:
    # New files have to be there for get_maintainer.pl.
    choice.tree.switch(choice.steps[-1])
    names = [name for name in made if not name.endswith(COVER)]
    for number, (name, patch) in enumerate(zip(names, choice.patches), 1):
        label = f"{choice.name} {patch.name}"
        tooling.checkpatch(choice.tree, folder / name, git, label, bench, tally)
        tally.judge(label, "kernel-doc", tooling.kernel_doc(
            choice.tree, sorted(touched([patch])), choice.steps[number - 1],
            choice.steps[number], bench))
