# SPDX-License-Identifier: GPL-2.0
"""The run: every tree in every state as every flavour."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

from . import boot, build, results, verdict
from .bench import Bench
from .errors import GateError
from .patches import Patches, Plan
from .report import Cell, Run
from .tables import SUITES_KUNIT
from .trees import Tree


class Wish(NamedTuple):
    """What the user asked for."""
    states: Sequence[str]
    flavours: Sequence[str]
    smp: int		# CPUs of a KUnit guest


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
    whole = Run()
    for tree, state, plan in plans:
        tree.switch(plan.files)
        cells = [_cell(tree, state, plan, flavour, wish, bench) for flavour in wish.flavours]
        whole.cells += cells
        # Where results are missing, a line of its own says so already.
        if not any(cell.error or cell.problems for cell in cells):
            judged = {cell.flavour: cell.judged for cell in cells}
            whole.toothless += [f"{tree.name} {state}: {line}"
                                for line in verdict.toothless(judged, plan.present)]
    return whole


def _log(bench: Bench, tree: Tree, state: str, flavour: str, stage: str) -> Path:
    return bench.out / f"{tree.folder.name}-{state}-{flavour}-{stage}.log"


def _cell(tree: Tree, state: str, plan: Plan, flavour: str, wish: Wish, bench: Bench) -> Cell:
    cell = Cell(tree.name, tree.origin, tree.version.full, state, flavour, plan.found,
                plan.present, _log(bench, tree, state, flavour, "console"))
    try:
        _fill(cell, tree, wish, bench)
    except GateError as err:
        if err.fatal:
            raise
        if err.tail:
            print(err.tail, file=sys.stderr, flush=True)
        cell.error = err
    return cell


def _fill(cell: Cell, tree: Tree, wish: Wish, bench: Bench) -> None:
    """Build, boot and judge one kernel."""
    with bench.progress.stage(f"{cell.name}: build"):
        began = time.monotonic()
        build.build(tree, cell.flavour, bench, _log(bench, tree, cell.state, cell.flavour, "build"))
        cell.seconds["build"] = time.monotonic() - began
    with bench.progress.stage(f"{cell.name}: boot and run KUnit"):
        if cell.flavour == "um":
            cell.seconds["kunit"] = boot.kunit_um(tree, bench, cell.console)
        else:
            cell.seconds["kunit"] = boot.kunit_x86_64(tree, wish.smp, bench, cell.console)
    parsed = results.collect(cell.console, tree.src, bench,
                             _log(bench, tree, cell.state, cell.flavour, "parse"),
                             cell.flavour, SUITES_KUNIT)
    cell.problems = parsed.problems
    cell.judged = verdict.judge(parsed.cases, cell.flavour, cell.present, SUITES_KUNIT)
