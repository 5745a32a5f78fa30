# SPDX-License-Identifier: GPL-2.0
"""What a run says at its end: table, failures, count."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gatelib.base.errors import HOLDS, VERDICT, GateError
from gatelib.base.load import STARVED, Usage
from gatelib.data.causes import CAUSES
from gatelib.data.figures import FIGURES
from gatelib.results.ktap import Figures
from gatelib.results.verdict import FAILED, FLAKED, PASSED, SKIPPED, Verdict

_NUMBER = re.compile(r"[0-9]{1,15}")

# The last column, notes, has no name.
_HEAD = ("tree", "state", "flavour", "suite", "pass", "fail", "skip", "verdict", "")


class Failure(NamedTuple):
    """Something that is not as it must be, whose fault it is, and the log to read."""
    cause: str	# one of CAUSES
    what: str	# with what to do
    log: Optional[Path]


@dataclass
class Cell:
    """One kernel of a run: a tree in a state, built as a flavour."""
    tree: str
    origin: str
    version: str
    state: str
    flavour: str
    found: Mapping[str, str]	# fix id -> what the tree came with; empty: nobody looked
    expected: Sequence[str] = ()	# names of the expectations
    content: str = ""		# of the tree: git's description, a package's version, a hash
    ident: str = ""		# build of the kernel that was meant
    tests: str = ""		# hash of the selftests
    started: str = ""
    verdicts: List[Verdict] = field(default_factory=list)
    logs: Dict[str, Path] = field(default_factory=dict)	# suite -> where its results are
    problems: List[Failure] = field(default_factory=list)
    figures: List[Figures] = field(default_factory=list)
    seconds: Dict[str, float] = field(default_factory=dict)	# stage -> time it took
    commands: Dict[str, Sequence[str]] = field(default_factory=dict)	# guest -> what booted it
    usage: Usage = Usage()	# of its guests
    error: Optional[GateError] = None

    @property
    def name(self) -> str:
        return f"{self.tree} {self.state} {self.flavour}"

    def judged(self) -> List[Failure]:
        """Return what is not as it must be in what the kernel said."""
        found = [Failure("test", f"{each.result.suite}.{each.result.case} {each.why}",
                         self.logs.get(each.result.suite))
                 for each in self.verdicts if each.outcome == FAILED]
        return [*found, *self.problems]

    def failures(self) -> List[Failure]:
        """Return everything that is not as it must be."""
        found = self.judged()
        if self.error is not None:
            what = "; ".join(part for part in (self.error.what, self.error.todo) if part)
            found.append(Failure(self.error.cause, what, self.error.log))
        return found


@dataclass
class Run:
    """All kernels of a run."""
    cells: List[Cell] = field(default_factory=list)

    def counts(self) -> Tuple[int, int, int]:
        """Return how many results were as they must, were not, and were skipped or flaked."""
        outcomes = [each.outcome for cell in self.cells for each in cell.verdicts]
        failed = sum(len(cell.failures()) for cell in self.cells)
        return (outcomes.count(PASSED), failed,
                outcomes.count(SKIPPED) + outcomes.count(FLAKED))

    def status(self) -> int:
        """Return the exit status; a kernel that could not be judged outweighs a bad verdict."""
        found = [cell.error.status for cell in self.cells if cell.error is not None]
        found += [CAUSES[failure.cause] for cell in self.cells for failure in cell.judged()]
        if found:
            return max(found)
        return HOLDS if self.counts()[0] else VERDICT

    def usage(self) -> Usage:
        """Return what all guests did with their time."""
        whole = Usage()
        for cell in self.cells:
            whole = whole.plus(cell.usage)
        return whole


def table(run: Run) -> List[str]:
    """Return the lines of the table tree x state x flavour x suite."""
    rows: List[Tuple[str, ...]] = [_HEAD]
    for cell in run.cells:
        key = (cell.tree, cell.state, cell.flavour)
        for suite in dict.fromkeys(each.result.suite for each in cell.verdicts):
            rows.append((*key, suite, *_row(cell, suite)))
        if cell.problems:
            rows.append((*key, "-", "-", "-", "-", "FAIL", f"problems: {len(cell.problems)}"))
        if cell.error is not None:
            rows.append((*key, "-", "-", "-", "-", "ERROR", cell.error.what))
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> List[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
            for row in rows]


def measured(run: Run) -> List[str]:
    """Return the lines of the table of what the selftests measured, none if they did not."""
    names = {figure.name for figure in FIGURES} - {"cpus"}
    rows = [(cell, each) for cell in run.cells for each in cell.figures
            if each.case and names & set(each.values)]
    shown = [figure for figure in FIGURES if any(figure.name in each.values for _, each in rows)]
    if not shown:
        return []
    lines = [("tree", "state", "measured", *(figure.title for figure in shown))]
    for cell, each in rows:
        values = (_shown(each.values.get(figure.name, "-"), figure.per) for figure in shown)
        lines.append((cell.tree, cell.state, f"{each.suite}.{each.case}", *values))
    return ["", *_columns(lines)]


def _shown(value: str, per: int) -> str:
    return f"{int(value) / per:.0f}" if per != 1 and _NUMBER.fullmatch(value) else value


def _row(cell: Cell, suite: str) -> Tuple[str, ...]:
    mine = [each for each in cell.verdicts if each.result.suite == suite]
    status = [each.result.status for each in mine]
    passes, skips = status.count("PASS"), status.count("SKIP")
    red = sum(1 for each in mine if each.must == "fail" and each.outcome == PASSED)
    wrong = sum(1 for each in mine if each.outcome == FAILED)
    flaky = [each for each in mine if each.outcome == FLAKED]
    notes = []
    if red:
        notes.append(f"{'known to fail' if cell.state == 'as-is' else 'red as it must be'}: {red}")
    if flaky:
        good = sum(1 for each in flaky if each.result.status == "PASS")
        notes.append(f"flaky: {good} of {len(flaky)} passed")
    if wrong:
        notes.append(f"not as it must be: {wrong}")
    return (str(passes), str(len(mine) - passes - skips), str(skips),
            "FAIL" if wrong else "ok", "; ".join(notes))


def failures(run: Run) -> List[str]:
    """Return a line for each thing that is not as it must be."""
    lines = []
    for cell in run.cells:
        for failure in cell.failures():
            log = f"; read {failure.log}" if failure.log else ""
            lines.append(f"FAIL {cell.name}: {failure.cause}: {failure.what}{log}")
    return lines


def kernels(run: Run) -> List[str]:
    """Return a line for each tree: where it is from, which fixes it came with, what is expected."""
    lines = []
    for tree in dict.fromkeys(cell.tree for cell in run.cells):
        mine = [cell for cell in run.cells if cell.tree == tree]
        parts = [f"{tree}: {mine[0].version} from {mine[0].origin}"]
        found = next((cell.found for cell in mine if cell.found), {})
        if found:
            parts.append("came with " + ", ".join(f"{fix} {form}" for fix, form in found.items()))
        parts += [f"as-is expects {' and '.join(cell.expected) or 'everything to pass'}"
                  for cell in mine if cell.state == "as-is"][:1]
        lines.append("; ".join(parts))
    return lines


def busy(run: Run) -> List[str]:
    """Return a line that says so if the host kept the guests waiting."""
    usage = run.usage()
    if usage.share >= STARVED:
        return []
    stopped = f", and stopped them for {usage.stopped:.0f} s" if usage.stopped else ""
    return [f"gate: the host was busy: the guests got {usage.share:.0%} of the CPU time that they "
            f"asked for{stopped}"]


def show(run: Run) -> List[str]:
    """Return all lines for the end of a run; the last one is the count."""
    passed, failed, skipped = run.counts()
    return ["", *kernels(run), "", *table(run), *measured(run), *failures(run), *busy(run),
            f"gate: {passed} passed, {failed} failed, {skipped} skipped"]
