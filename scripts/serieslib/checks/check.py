# SPDX-License-Identifier: GPL-2.0
"""All checks, one tree and state after the other."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from gatelib.base.errors import HOLDS, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.trees import PATCH_SETS
from gatelib.trees.patches import DoesNotApply, Patches, touched
from gatelib.trees.tree import Tree
from serieslib.base.git import Git
from serieslib.base.report import Finding, Report
from serieslib.base.tables import COVER
from serieslib.checks import b4run, static, tooling
from serieslib.checks.b4run import Mails
from serieslib.checks.walk import Walk
from serieslib.mails import export, letters
from serieslib.mails.series import Series, choose
from serieslib.sets import folders

# What a user can choose with --only, in the order of the work.
GROUPS = ("files", "mails", "tools", "builds")
# With all fixes taken out a tree gets the whole series; as it is, what it lacks.
_STATES = ("broken", "as-is")


class Options(NamedTuple):
    """What the user asked for."""
    groups: Sequence[str]	# of GROUPS
    flavours: Sequence[str]


def check(trees: Sequence[Tree], options: Options, work: Workspace) -> int:
    """Check the sets, and the series of every tree; return the exit status.

    A tree that cannot be verdicts does not keep the others from being so.
    """
    report = Report(work.progress)
    status = HOLDS
    if "files" in options.groups:
        report.judge("patches/", "nothing else in it", [
            Finding(f"{name} belongs to no set", "remove it, or add its set to PATCH_SETS")
            for name in folders.strangers(work.root)])
        for name in PATCH_SETS:
            with report.stage(f"set {name}: files"):
                static.check_set(work.root, name, work.env, work.cache / "tmp", report)
    for tree in trees:
        try:
            _tree(tree, options, work, report)
        except GateError as err:
            if err.tail:
                print(err.tail, file=sys.stderr)
            print(f"series: {err.line()}", file=sys.stderr, flush=True)
            status = max(status, err.status)
            if err.fatal:
                break
    work.progress.say(report.line())
    return max(status, report.status())


def _tree(tree: Tree, options: Options, work: Workspace, report: Report) -> None:
    """Check every series of one tree."""
    patches = Patches(work.root / "patches", work.env, work.cache / "tmp")
    tree.prepare(work, patches.touched())
    with tempfile.TemporaryDirectory(dir=work.cache / "tmp", prefix="check-") as temp:
        walk = Walk(tree, work, Path(temp), options.flavours)
        done: List[Series] = []
        for state in _STATES:
            try:
                series = choose(tree, state, patches)
            except GateError as err:
                if err.status != UNUSABLE:
                    raise
                report.judge(f"{tree.name} {state}", "a series applies",
                            [Finding(err.what, err.todo)])
                continue
            if any(each.steps == series.steps for each in done):
                continue	# the tree has no fix, so this is the same series
            done.append(series)
            where = Path(temp) / state
            where.mkdir()
            tests_apply(series, patches, report)
            _series(series, options, where, work, report)
            if "builds" in options.groups:
                walk.series(series, report)


def tests_apply(series: Series, patches: Patches, report: Report) -> None:
    """Check that the set's tests apply to the base with no fix, and with all of them."""
    each = next(found for found in patches.sets if found.name == series.set)
    fixes = [path for path in series.patches if path not in each.tests]
    none: List[Path] = []
    for what, first in (("without the fixes", none), ("with the fixes", fixes)):
        found: List[Finding] = []
        try:
            patches.apply([*first, *each.tests], series.plan.files)
        except DoesNotApply as err:
            found = [Finding(str(err), "rebase the test patch so that it needs no fix")]
        report.judge(series.name, f"tests apply {what}", found)


def _series(series: Series, options: Options, temp: Path, work: Workspace, report: Report) -> None:
    """Check the mails of one series and what the tree's tools say of them."""
    if not {"mails", "tools"} & set(options.groups):
        return
    with report.stage(f"{series.name}: git repository with set {series.set}"):
        git, base = export.applied(series, temp / "series", work)
    sender = letters.author(series.patches)
    made = export.compose(series, git, base, work, sender)
    letters.save(made, temp / "mails")
    if "mails" in options.groups:
        with report.stage(f"{series.name}: git am, b4 am, b4 shazam, b4 send"):
            _mails(Mails(series, base, temp / "mails", temp), sender, work, report)
        _range_diff(series, git, base, work)
    if "tools" in options.groups:
        with report.stage(f"{series.name}: checkpatch, kernel-doc"):
            _tools(series, made, temp / "mails", git, work, report)


def _mails(given: Mails, sender: str, work: Workspace, report: Report) -> None:
    reference = b4run.git_am(given, work, report)
    checks = {"b4 am": b4run.b4_am, "b4 shazam": b4run.b4_shazam, "b4 send": b4run.b4_send}
    for name, run in checks.items():
        if reference is None:
            report.skip(given.series.name, name, "git am does not take the mails")
        else:
            run(given, reference, sender, work, report)


def _range_diff(series: Series, git: Git, base: str, work: Workspace) -> None:
    """Write what changed since each older version that is kept in patches/SET/vN."""
    folder = work.root / "patches" / series.set
    for old in sorted(path for path in folder.glob("v[0-9]*") if path.name[1:].isdigit()):
        ref = letters.previous(work.root, series, git, base, int(old.name[1:]) + 1)
        if ref is not None:
            text = git.run("range-diff", "--no-color", f"{base}..{ref}", f"{base}..series")
            log = work.out / f"{series.tree.folder.name}-{series.state}-{old.name}.range-diff"
            log.write_bytes(text)
            work.progress.say(f"{series.name}: what changed since {old.name} is in {log}")


def _tools(series: Series, made: Dict[str, bytes], folder: Path, git: Git, work: Workspace,
           report: Report) -> None:
    # New files have to be there for get_maintainer.pl.
    series.tree.switch(series.steps[-1])
    names = [name for name in made if not name.endswith(COVER)]
    for number, (name, patch) in enumerate(zip(names, series.patches), 1):
        label = f"{series.name} {patch.name}"
        tooling.checkpatch(series.tree, folder / name, git, label, work, report)
        report.judge(label, "kernel-doc", tooling.kernel_doc(
            series.tree, sorted(touched([patch])), series.steps[number - 1],
            series.steps[number], work))
