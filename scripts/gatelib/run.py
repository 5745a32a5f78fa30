# SPDX-License-Identifier: GPL-2.0
"""The run: every tree in every state as every flavour."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import List, Mapping, NamedTuple, Sequence, Tuple

from . import boot, build, guests, initramfs, results, verdict
from .bench import Bench
from .errors import UNUSABLE, GateError
from .patches import Patches, Plan
from .report import Cell, Problem, Run
from .tables import GUESTS, SELFTESTS_DIR, STAGES, SUITES_KUNIT
from .trees import Tree

SUITES_SELFTESTS = tuple(item.suite for guest in GUESTS for item in guest.items)


class Wish(NamedTuple):
    """What the user asked for."""
    states: Sequence[str]
    flavours: Sequence[str]
    stages: Sequence[str]	# of tables.STAGES
    smp: Mapping[str, int]	# stage -> CPUs of its guest
    accel: guests.Accelerator
    only: bool		# the user named the stages, and gets them or an error


def gate(trees: Sequence[Tree], wish: Wish, patches: Patches, bench: Bench) -> Run:
    """Build, boot and judge every kernel; return all that came out.

    Raises GateError if a tree cannot be used, before anything is built, or
    if the machine cannot go on.  What went wrong with one kernel is in its
    cell, and does not keep the others from being judged.
    """
    plans: List[Tuple[Tree, str, Plan]] = []
    for tree in trees:
        tree.prepare(bench, patches.touched())
        for state in wish.states:
            plans.append((tree, state, patches.plan(state, tree.lookup, tree.version.series)))
    jobs = [(tree, state, plan, _stages(tree, plan, wish, bench)) for tree, state, plan in plans]
    whole = Run()
    for tree, state, plan, stages in jobs:
        tree.switch(plan.files)
        cells = [_cell(tree, state, plan, flavour, [stage for stage in stages if flavour in
                                                    STAGES[stage].flavours], wish, bench)
                 for flavour in wish.flavours]
        whole.cells += cells
        # Where results are missing, a line of its own says so already.
        if not any(cell.error or cell.problems for cell in cells):
            judged = {cell.flavour: cell.judged for cell in cells}
            suites = [suite for stage in stages for suite in _suites(stage)]
            whole.toothless += [f"{tree.name} {state}: {line}"
                                for line in verdict.toothless(judged, plan.present, suites)]
    return whole


def _suites(stage: str) -> Sequence[str]:
    return SUITES_KUNIT if stage == "kunit" else SUITES_SELFTESTS


def _stages(tree: Tree, plan: Plan, wish: Wish, bench: Bench) -> List[str]:
    """Return the stages that the tree can have, of those that the user wants."""
    items = [item for guest in GUESTS for item in guest.items]
    if "selftests" not in wish.stages or initramfs.carried(plan, items):
        return list(wish.stages)
    what = f"the patches for {tree.name} bring no selftests into {SELFTESTS_DIR}"
    if wish.only:
        raise GateError(UNUSABLE, what, "use --only kunit")
    bench.progress.say(f"gate: {what}; KUnit only")
    return [stage for stage in wish.stages if stage != "selftests"]


def _log(bench: Bench, cell: Cell, tree: Tree, stage: str) -> Path:
    return bench.out / f"{tree.folder.name}-{cell.state}-{cell.flavour}-{stage}.log"


def _cell(tree: Tree, state: str, plan: Plan, flavour: str, stages: Sequence[str], wish: Wish,
          bench: Bench) -> Cell:
    cell = Cell(tree.name, tree.origin, tree.version.full, state, flavour, plan.found,
                plan.present)
    try:
        _fill(cell, tree, stages, wish, bench)
    except GateError as err:
        if err.fatal:
            raise
        if err.tail:
            print(err.tail, file=sys.stderr, flush=True)
        cell.error = err
    return cell


def _fill(cell: Cell, tree: Tree, stages: Sequence[str], wish: Wish, bench: Bench) -> None:
    """Build, boot and judge one kernel."""
    with bench.progress.stage(f"{cell.name}: build"):
        began = time.monotonic()
        build.build(tree, cell.flavour, bench, _log(bench, cell, tree, "build"))
        cell.seconds["build"] = time.monotonic() - began
    if "kunit" in stages:
        _kunit(cell, tree, wish, bench)
    if "selftests" in stages:
        _selftests(cell, tree, wish, bench)


def _kunit(cell: Cell, tree: Tree, wish: Wish, bench: Bench) -> None:
    console = _log(bench, cell, tree, "console")
    with bench.progress.stage(f"{cell.name}: boot and run KUnit"):
        if cell.flavour == "um":
            cell.seconds["kunit"] = boot.kunit_um(tree, bench, console)
        else:
            cell.seconds["kunit"] = boot.kunit_x86_64(tree, wish.smp["kunit"], bench, console)
    parsed = results.collect(console, tree.src, bench, _log(bench, cell, tree, "parse"),
                             SUITES_KUNIT)
    cell.problems += [Problem(line, console) for line in parsed.problems]
    _judge(cell, parsed.cases, SUITES_KUNIT, console)


def _judge(cell: Cell, cases: Sequence[results.Result], suites: Sequence[str], log: Path) -> None:
    judged = verdict.judge(cases, cell.flavour, cell.present, suites)
    cell.logs.update({each.result.suite: log for each in judged})
    cell.judged += judged


def _selftests(cell: Cell, tree: Tree, wish: Wish, bench: Bench) -> None:
    """Build the selftests, and have each guest run its own."""
    with bench.progress.stage(f"{cell.name}: build selftests"):
        items = [item for guest in GUESTS for item in guest.items]
        parts = initramfs.make_parts(tree, items, bench, _log(bench, cell, tree, "selftests-build"))
    for guest in GUESTS:
        smp = guest.smp or wish.smp["selftests"]
        accel = wish.accel.choose(guest.threads, parts, bench)
        with bench.progress.stage(f"{cell.name}: boot {smp} CPUs and run {guest.name}"):
            outcome = guests.run(guest, smp, accel, parts, cell.present, bench,
                                 _log(bench, cell, tree, guest.name).with_suffix(""))
        cell.seconds[guest.name] = outcome.seconds
        cell.problems += [Problem(*each) for each in outcome.problems]
        cell.figures += [each._replace(suite=f"{guest.name} guest") if not each.case else each
                         for each in outcome.reading.figures]
        _judge(cell, outcome.reading.cases, [item.suite for item in guest.items], outcome.results)
