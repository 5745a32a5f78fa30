# SPDX-License-Identifier: GPL-2.0
"""What came out of the checks: counts, and one line for each complaint."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, List, NamedTuple

from gatelib.base.errors import HOLDS, VERDICT
from gatelib.base.workspace import Progress


class Finding(NamedTuple):
    """What is wrong with a patch, and what to do about it; a line without a final stop each."""
    what: str
    todo: str


class Report:
    """Counts results and prints complaints as they come."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._later: List[str] = []	# lines that wait for the end of the stage
        self._busy = False
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def _say(self, line: str) -> None:
        if self._busy:
            self._later.append(line)
        else:
            self._progress.say(line)

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Show text while the body runs; the complaints come below it."""
        self._busy = True
        try:
            with self._progress.stage(text):
                yield
        finally:
            self._busy = False
            for line in self._later:
                self._progress.say(line)
            self._later = []

    def judge(self, label: str, check: str, findings: List[Finding]) -> bool:
        """Count one result: passed if nothing was found.

        label: tree or set, and patch.  check: the check's name.  Returns whether it passed.
        """
        for finding in findings:
            what, todo = (" ".join(part.split()) for part in finding)
            self._say(f"FAILED {label}: {check}: {what}; {todo}")
        if findings:
            self.failed += 1
        else:
            self.passed += 1
        return not findings

    def skip(self, label: str, check: str, why: str) -> None:
        """Count a result that there could not be, and say why."""
        self._say(f"skipped {label}: {check}: {why}")
        self.skipped += 1

    def accept(self, label: str, check: str, what: str, why: str) -> None:
        """Say that something was found and is accepted."""
        self._say(f"accepted {label}: {check}: {what} ({why})")

    def line(self) -> str:
        """Return the last line of the output."""
        return f"series: {self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def status(self) -> int:
        """Return the exit status; nothing checked is no success."""
        return HOLDS if self.passed and not self.failed else VERDICT
