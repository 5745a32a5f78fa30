# SPDX-License-Identifier: GPL-2.0
"""What a run says at its end: table, failures, count, results.json."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gatelib.base.errors import HOLDS, VERDICT, GateError
from gatelib.data.tests import FIGURES
from gatelib.results.ktap import Figures
from gatelib.results.verdict import FAILED, PASSED, SKIPPED, Verdict
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.patches import ABSENT

RESULTS_JSON = "results.json"
_NUMBER = re.compile(r"[0-9]{1,15}")

# The last column, notes, has no name.
_HEAD = ("tree", "state", "flavour", "suite", "pass", "fail", "skip", "verdict", "")


class Problem(NamedTuple):
    """Something that makes results untrustworthy, and the log to read."""
    what: str
    log: Path


@dataclass
class Cell:
    """One kernel of a run: a tree in a state, built as a flavour."""
    tree: str
    origin: str
    version: str
    state: str
    flavour: str
    found: Mapping[str, str]	# fix id -> what the tree came with
    present: Mapping[str, str]	# fix id -> what this kernel has
    verdicts: List[Verdict] = field(default_factory=list)
    logs: Dict[str, Path] = field(default_factory=dict)	# suite -> where its results are
    problems: List[Problem] = field(default_factory=list)
    figures: List[Figures] = field(default_factory=list)
    seconds: Dict[str, float] = field(default_factory=dict)	# stage -> time it took
    error: Optional[GateError] = None

    @property
    def name(self) -> str:
        return f"{self.tree} {self.state} {self.flavour}"


@dataclass
class Run:
    """All kernels of a run, and what is wrong across several of them."""
    cells: List[Cell] = field(default_factory=list)
    toothless: List[str] = field(default_factory=list)

    def counts(self) -> Tuple[int, int, int]:
        """Return how many results were as they must, were not, and were skipped rightly."""
        outcomes = [each.outcome for cell in self.cells for each in cell.verdicts]
        more = len(self.toothless) + sum(len(cell.problems) + (cell.error is not None)
                                         for cell in self.cells)
        return outcomes.count(PASSED), outcomes.count(FAILED) + more, outcomes.count(SKIPPED)

    def status(self) -> int:
        """Return the exit status; a kernel that could not be verdicts outweighs a bad verdict."""
        errors = [cell.error.status for cell in self.cells if cell.error is not None]
        if errors:
            return max(errors)
        passed, failed, _ = self.counts()
        return HOLDS if passed and not failed else VERDICT


def table(run: Run) -> List[str]:
    """Return the lines of the table tree x state x flavour x suite."""
    rows: List[Tuple[str, ...]] = [_HEAD]
    for cell in run.cells:
        key = (cell.tree, cell.state, cell.flavour)
        if cell.error is not None:
            rows.append((*key, "-", "-", "-", "-", "ERROR", cell.error.what))
            continue
        for suite in _suites(cell.verdicts):
            rows.append((*key, suite, *_row(cell, suite)))
        if cell.problems:
            rows.append((*key, "-", "-", "-", "-", "FAIL", f"problems: {len(cell.problems)}"))
    return _columns(rows)


def _columns(rows: Sequence[Sequence[str]]) -> List[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
            for row in rows]


def measured(run: Run) -> List[str]:
    """Return the lines of the table of what the tests measured, none if they did not."""
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


def _suites(verdicts: Sequence[Verdict]) -> List[str]:
    return list(dict.fromkeys(each.result.suite for each in verdicts))


def _row(cell: Cell, suite: str) -> Tuple[str, ...]:
    mine = [each for each in cell.verdicts if each.result.suite == suite]
    status = [each.result.status for each in mine]
    passes, skips = status.count("PASS"), status.count("SKIP")
    red = sum(1 for each in mine if each.must == "fail" and each.outcome == PASSED)
    wrong = sum(1 for each in mine if each.outcome == FAILED)
    notes = []
    if red:
        known = "known: fix absent, " if cell.state == "as-is" else ""
        notes.append(f"{known}red as it must be: {red}")
    if wrong:
        notes.append(f"not as it must be: {wrong}")
    return (str(passes), str(len(mine) - passes - skips), str(skips),
            "FAIL" if wrong else "ok", "; ".join(notes))


def failures(run: Run) -> List[str]:
    """Return a line for each thing that is not as it must be."""
    lines = []
    for cell in run.cells:
        for each in cell.verdicts:
            if each.outcome == FAILED:
                lines.append(f"FAIL {cell.name}: {each.result.suite}.{each.result.case} "
                             f"{each.why}; read {cell.logs[each.result.suite]}")
        for problem in cell.problems:
            lines.append(f"FAIL {cell.name}: {problem.what}; read {problem.log}")
        if cell.error is not None:
            lines.append(f"ERROR {cell.name}: {cell.error.line()}")
    lines += [f"FAIL {line}; choose a flavour in which one runs" for line in run.toothless]
    return lines


def known(run: Run) -> List[str]:
    """Return a line for each kernel as it came that lacks a fix, so that green is not misread."""
    lines = []
    for cell in run.cells:
        if cell.state != "as-is" or cell.error is not None:
            continue
        for fix, state in cell.present.items():
            if state == ABSENT:
                lines.append(f"known: {cell.name} lacks fix {fix}: its witnesses fail as they must")
    return lines


def kernels(run: Run) -> List[str]:
    """Return a line for each tree: where it is from, and which fixes it came with."""
    lines = {}
    for cell in run.cells:
        fixes = ", ".join(f"{fix} {state}" for fix, state in cell.found.items())
        lines[cell.tree] = f"{cell.tree}: {cell.version} from {cell.origin}; came with {fixes}"
    return list(lines.values())


def show(run: Run) -> List[str]:
    """Return all lines for the end of a run; the last one is the count."""
    passed, failed, skipped = run.counts()
    return ["", *kernels(run), "", *table(run), *measured(run), *known(run), *failures(run),
            f"gate: {passed} passed, {failed} failed, {skipped} skipped"]


def _plain(cell: Cell) -> Dict[str, Any]:
    return {
        "tree": cell.tree, "origin": cell.origin, "version": cell.version,
        "state": cell.state, "flavour": cell.flavour,
        "found": dict(cell.found), "present": dict(cell.present),
        "logs": {suite: log.name for suite, log in cell.logs.items()},
        "seconds": {stage: round(value, 1) for stage, value in cell.seconds.items()},
        "cases": [{"suite": each.result.suite, "case": each.result.case,
                   "status": each.result.status, "reason": each.result.reason,
                   "must": each.must, "outcome": each.outcome, "why": each.why}
                  for each in cell.verdicts],
        "figures": [each._asdict() for each in cell.figures],
        "problems": [problem.what for problem in cell.problems],
        "error": cell.error.line() if cell.error is not None else None,
    }


def write_json(run: Run, out: Path) -> None:
    """Write everything about the run to out/results.json."""
    passed, failed, skipped = run.counts()
    data = {"status": run.status(), "passed": passed, "failed": failed, "skipped": skipped,
            "toothless": run.toothless, "kernels": [_plain(cell) for cell in run.cells]}
    write_blob(out / RESULTS_JSON, Blob((json.dumps(data, indent=1) + "\n").encode()))
