# SPDX-License-Identifier: GPL-2.0
"""The run: every tree in every state as every flavour."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import List, Mapping, NamedTuple, Sequence, Tuple

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.tests import GUESTS, SELFTESTS_DIR, STAGES, SUITES_KUNIT
from gatelib.guests import boot, initramfs, selftests
from gatelib.kernels import build
from gatelib.results import kunit, verdict
from gatelib.results.report import Cell, Problem, Run
from gatelib.trees.patches import Patches, Plan
from gatelib.trees.tree import Tree

SUITES_SELFTESTS = tuple(item.suite for guest in GUESTS for item in guest.items)


class Options(NamedTuple):
    """What the user asked for."""
    states: Sequence[str]
    flavours: Sequence[str]
    stages: Sequence[str]	# of tables.STAGES
    smp: Mapping[str, int]	# stage -> CPUs of its guest
    accel: selftests.Accelerator
    only: bool		# the user named the stages, and gets them or an error


def gate(trees: Sequence[Tree], options: Options, patches: Patches, work: Workspace) -> Run:
    """Build, boot and judge every kernel; return all that came out.

    Raises GateError if a tree cannot be used, before anything is built, or
    if the machine cannot go on.  What went wrong with one kernel is in its
    cell, and does not keep the others from being verdicts.
    """
    plans: List[Tuple[Tree, str, Plan]] = []
    for tree in trees:
        tree.prepare(work, patches.touched())
        for state in options.states:
            plans.append((tree, state, patches.plan(state, tree.lookup, tree.version.series)))
    jobs = [(tree, state, plan, _stages(tree, plan, options, work)) for tree, state, plan in plans]
    whole = Run()
    for tree, state, plan, stages in jobs:
        tree.switch(plan.files)
        cells = [_cell(tree, state, plan, flavour, [stage for stage in stages if flavour in
                                                    STAGES[stage].flavours], options, work)
                 for flavour in options.flavours]
        whole.cells += cells
        # Where results are missing, a line of its own says so already.
        if not any(cell.error or cell.problems for cell in cells):
            verdicts = {cell.flavour: cell.verdicts for cell in cells}
            suites = [suite for stage in stages for suite in _suites(stage)]
            whole.toothless += [f"{tree.name} {state}: {line}"
                                for line in verdict.toothless(verdicts, plan.present, suites)]
    return whole


def _suites(stage: str) -> Sequence[str]:
    return SUITES_KUNIT if stage == "kunit" else SUITES_SELFTESTS


def _stages(tree: Tree, plan: Plan, options: Options, work: Workspace) -> List[str]:
    """Return the stages that the tree can have, of those that the user wants."""
    items = [item for guest in GUESTS for item in guest.items]
    if "selftests" not in options.stages or initramfs.carried(plan, items):
        return list(options.stages)
    what = f"the patches for {tree.name} bring no selftests into {SELFTESTS_DIR}"
    if options.only:
        raise GateError(UNUSABLE, what, "use --only kunit")
    work.progress.say(f"gate: {what}; KUnit only")
    return [stage for stage in options.stages if stage != "selftests"]


def _log(work: Workspace, cell: Cell, tree: Tree, stage: str) -> Path:
    return work.out / f"{tree.folder.name}-{cell.state}-{cell.flavour}-{stage}.log"


def _cell(tree: Tree, state: str, plan: Plan, flavour: str, stages: Sequence[str], options: Options,
          work: Workspace) -> Cell:
    cell = Cell(tree.name, tree.origin, tree.version.full, state, flavour, plan.found,
                plan.present)
    try:
        _fill(cell, tree, stages, options, work)
    except GateError as err:
        if err.fatal:
            raise
        if err.tail:
            print(err.tail, file=sys.stderr, flush=True)
        cell.error = err
    return cell


def _fill(cell: Cell, tree: Tree, stages: Sequence[str], options: Options, work: Workspace) -> None:
    """Build, boot and judge one kernel."""
    with work.progress.stage(f"{cell.name}: build"):
        began = time.monotonic()
        build.build(tree, cell.flavour, work, _log(work, cell, tree, "build"))
        cell.seconds["build"] = time.monotonic() - began
    if "kunit" in stages:
        _kunit(cell, tree, options, work)
    if "selftests" in stages:
        _selftests(cell, tree, options, work)


def _kunit(cell: Cell, tree: Tree, options: Options, work: Workspace) -> None:
    console = _log(work, cell, tree, "console")
    with work.progress.stage(f"{cell.name}: boot and run KUnit"):
        if cell.flavour == "um":
            cell.seconds["kunit"] = boot.kunit_um(tree, work, console)
        else:
            cell.seconds["kunit"] = boot.kunit_x86_64(tree, options.smp["kunit"], work, console)
    parsed = kunit.collect(console, tree.src, work, _log(work, cell, tree, "parse"),
                             SUITES_KUNIT)
    cell.problems += [Problem(line, console) for line in parsed.problems]
    _judge(cell, parsed.cases, SUITES_KUNIT, console)


def _judge(cell: Cell, cases: Sequence[kunit.Result], suites: Sequence[str], log: Path) -> None:
    verdicts = verdict.judge(cases, cell.flavour, cell.present, suites)
    cell.logs.update({each.result.suite: log for each in verdicts})
    cell.verdicts += verdicts


def _selftests(cell: Cell, tree: Tree, options: Options, work: Workspace) -> None:
    """Build the selftests, and have each guest run its own."""
    with work.progress.stage(f"{cell.name}: build selftests"):
        items = [item for guest in GUESTS for item in guest.items]
        parts = initramfs.make_parts(tree, items, work, _log(work, cell, tree, "selftests-build"))
    for guest in GUESTS:
        smp = guest.smp or options.smp["selftests"]
        accel = options.accel.choose(guest.threads, parts, work)
        with work.progress.stage(f"{cell.name}: boot {smp} CPUs and run {guest.name}"):
            outcome = selftests.run(guest, smp, accel, parts, cell.present, work,
                                 _log(work, cell, tree, guest.name).with_suffix(""))
        cell.seconds[guest.name] = outcome.seconds
        cell.problems += [Problem(*each) for each in outcome.problems]
        cell.figures += [each._replace(suite=f"{guest.name} guest") if not each.case else each
                         for each in outcome.reading.figures]
        _judge(cell, outcome.reading.cases, [item.suite for item in guest.items], outcome.results)
