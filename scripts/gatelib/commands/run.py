# SPDX-License-Identifier: GPL-2.0
"""The run: every tree in every state as every flavour."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Sequence, Tuple

from gatelib.base.errors import GateError
from gatelib.base.workspace import Workspace
from gatelib.commands.common import utc_now
from gatelib.data.kernels import FLAVOURS
from gatelib.data.tests import GUESTS, STAGES, SUITES_KUNIT
from gatelib.data.trees import FIXES
from gatelib.guests import boot, initramfs, selftests
from gatelib.kernels import build, identity
from gatelib.results import expectations, ktap, kunit, verdict
from gatelib.results.declared import declared
from gatelib.results.evidence import Problem, Result
from gatelib.results.expectations import Expectations
from gatelib.results.report import Cell, Failure, Run
from gatelib.trees import insertion, states
from gatelib.trees.patches import Patches
from gatelib.trees.states import State
from gatelib.trees.tree import Tree

SUITES_SELFTESTS = tuple(item.suite for guest in GUESTS for item in guest.items)
EXPECTATIONS = Path("scripts", "expectations")


class Options(NamedTuple):
    """What the user asked for."""
    states: Sequence[str]
    flavours: Sequence[str]
    stages: Sequence[str]	# of data.tests.STAGES
    smp: Mapping[str, int]	# stage -> CPUs of its guest
    accel: selftests.Accelerator
    expect: Sequence[str]	# names and files, for the tree as it is
    tests: str		# one of data.trees.TESTS


class _Job(NamedTuple):
    """A tree in a state, and what is expected of it."""
    tree: Tree
    state: State
    expected: Expectations
    names: Sequence[str]	# of the expectations, but for those of flavours
    content: str		# of the tree, as people call it


class _Gate:
    """One run."""

    def __init__(self, options: Options, patches: Patches, work: Workspace) -> None:
        self._options = options
        self._patches = patches
        self._work = work
        self._declared = declared(work.root)
        self._known = self._known_failures()

    def _known_failures(self) -> Dict[str, List[str]]:
        """Return "suite.case" -> names of shipped expectations in which it fails."""
        known: Dict[str, List[str]] = {}
        for name in expectations.shipped(self._work.root / EXPECTATIONS):
            for line in self._load([name]).lines:
                if line.kind == "fails":
                    known.setdefault(line.case, []).append(name)
        return known

    def _load(self, names: Sequence[str]) -> Expectations:
        return expectations.load(self._work.root / EXPECTATIONS, names, self._declared, FLAVOURS)

    def job(self, tree: Tree, name: str, content: str) -> _Job:
        """Return what one state of a prepared tree is and must do.

        content: what people call the tree.

        Raises GateError if it cannot be had, or an expectation cannot be used.
        """
        work, options = self._work, self._options
        names = states.expectations_of(tree, name, options.expect)
        of_flavours = [flavour for flavour in FLAVOURS
                       if flavour in expectations.shipped(work.root / EXPECTATIONS)]
        expected = self._load([*names, *of_flavours])
        state = states.state_of(tree, name, options.tests, work.root, self._patches)
        suites = [suite for stage in options.stages for suite in suites_of(stage)]
        witnesses = expectations.witnesses(work.root / EXPECTATIONS, [fix.id for fix in FIXES])
        expectations.last_witness(expected, witnesses, options.flavours, suites)
        return _Job(tree, state, expected, names, content)

    def cell(self, job: _Job, flavour: str) -> Cell:
        """Build, boot and judge one kernel; what went wrong with it is in its cell."""
        tree, state, work = job.tree, job.state, self._work
        cell = Cell(tree.name, tree.origin, tree.version.full, state.name, flavour, state.found,
                    job.names, job.content,
                    identity.kernel_id(tree, state.files, flavour, work),
                    identity.tests_digest(state.files), utc_now())
        stages = [stage for stage in self._options.stages if flavour in STAGES[stage].flavours]
        try:
            with work.progress.stage(f"{cell.name}: build"):
                began = time.monotonic()
                build.build(tree, flavour, work, self._log(cell, tree, "build"), cell.ident)
                cell.seconds["build"] = time.monotonic() - began
            if "kunit" in stages:
                self._kunit(cell, job)
            if "selftests" in stages:
                self._selftests(cell, job)
        except GateError as err:
            if err.fatal:
                raise
            if err.tail:
                print(err.tail, file=sys.stderr, flush=True)
            cell.error = err
        return cell

    def _log(self, cell: Cell, tree: Tree, stage: str) -> Path:
        return self._work.out / f"{tree.folder.name}-{cell.state}-{cell.flavour}-{stage}.log"

    def _note(self, cell: Cell, name: str, booted: boot.Boot) -> None:
        cell.seconds[name] = booted.seconds
        cell.commands[name] = booted.argv
        cell.usage = cell.usage.plus(booted.usage)

    def _kunit(self, cell: Cell, job: _Job) -> None:
        work, tree = self._work, job.tree
        console = self._log(cell, tree, "console")
        with work.progress.stage(f"{cell.name}: boot and run KUnit"):
            if cell.flavour == "um":
                booted = boot.kunit_um(tree, work, console)
            else:
                booted = boot.kunit_x86_64(tree, self._options.smp["kunit"], work, console)
        self._note(cell, "kunit", booted)
        found = kunit.collect(console, tree.src, work, self._log(cell, tree, "parse"),
                              SUITES_KUNIT, cell.ident)
        self._judge(cell, job, found.cases, SUITES_KUNIT, console, found.problems)

    def _selftests(self, cell: Cell, job: _Job) -> None:
        """Build the selftests, and have each guest run its own."""
        work, tree = self._work, job.tree
        with work.progress.stage(f"{cell.name}: build selftests"):
            parts = initramfs.make_parts(
                tree, [item for guest in GUESTS for item in guest.items], work,
                self._log(cell, tree, "selftests-build"), cell.ident,
                identity.tests_id(tree, job.state.files, work))
        for guest in GUESTS:
            smp = guest.smp or self._options.smp["selftests"]
            accel = self._options.accel.choose(guest.threads, parts, work)
            with work.progress.stage(f"{cell.name}: boot {smp} CPUs and run {guest.name}"):
                logs = selftests.run(guest, smp, accel, parts, work,
                                     self._log(cell, tree, guest.name).with_suffix(""))
            self._note(cell, guest.name, logs.boot)
            reading = ktap.read(logs.text(), guest.items, cell.ident)
            cell.figures += [each._replace(suite=f"{guest.name} guest") if not each.case else each
                             for each in reading.figures]
            splats = kunit.splats(kunit.console_lines(logs.console))
            cell.problems += [Failure(each.cause, f"{guest.name} guest: {each.what}", logs.console)
                              for each in splats]
            self._judge(cell, job, reading.cases, [item.suite for item in guest.items],
                        logs.results, [each._replace(what=f"{guest.name} guest: {each.what}")
                                       for each in reading.problems[:6]])

    def _judge(self, cell: Cell, job: _Job, cases: Sequence[Result], suites: Sequence[str],
               log: Path, problems: Sequence[Problem]) -> None:
        cell.problems += [Failure(each.cause, each.what, log) for each in problems]
        verdicts = verdict.judge(cases, cell.flavour, job.expected, self._declared, self._known,
                                 suites)
        cell.logs.update({each.result.suite: log for each in verdicts})
        cell.verdicts += verdicts


def check_expectations(root: Path, names: Sequence[str]) -> None:
    """Raise GateError if an expectation cannot be used; root: the project."""
    expectations.load(root / EXPECTATIONS, names, declared(root), FLAVOURS)


def gate(trees: Sequence[Tree], options: Options, patches: Patches, work: Workspace) -> Run:
    """Build, boot and judge every kernel; return all that came out.

    Raises GateError if a tree or an expectation cannot be used, before
    anything is built, or if the machine cannot go on.  What went wrong with
    one kernel is in its cell, and does not keep the others from being judged.
    """
    one = _Gate(options, patches, work)
    jobs: List[_Job] = []
    for tree in trees:
        tree.prepare(work, states.touched(work.root, patches))
        if insertion.present(tree.lookup, work.root):
            which = "ours in their place" if options.tests == "ours" else "its own"
            work.progress.say(f"gate: {tree.name} has these tests already; using {which}, as "
                              f"--tests {options.tests} says")
        content = tree.describe(work)
        jobs += [one.job(tree, name, content) for name in options.states]
    whole = Run()
    for job in jobs:
        job.tree.switch(job.state.files)
        whole.cells += [one.cell(job, flavour) for flavour in options.flavours]
    return whole


def suites_of(stage: str) -> Tuple[str, ...]:
    """Return the suites that a stage runs."""
    return SUITES_KUNIT if stage == "kunit" else SUITES_SELFTESTS

