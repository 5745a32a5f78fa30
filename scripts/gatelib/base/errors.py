# SPDX-License-Identifier: GPL-2.0
"""Exit statuses of the gate, and the one exception that carries them."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

HOLDS = 0	# every test did what it must
VERDICT = 1	# a test failed where it must pass, or a witness passed where it must fail
UNUSABLE = 2	# the call or the tree cannot be used
MACHINE = 3	# a build, a boot or the machine went wrong


class GateError(Exception):
    """Ends the gate, or one kernel of a run, with a line for the user.

    status: one of UNUSABLE and MACHINE
    what: what is wrong, one line without a final stop
    todo: what the user can do about it, one line without a final stop
    log: the log to read, if there is one
    tail: last lines of that log, worth showing at once
    fatal: no other kernel of the same run can do better
    """

    def __init__(self, status: int, what: str, todo: str = "", *,
                 log: Optional[Path] = None, tail: str = "",
                 fatal: bool = False) -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.todo = todo
        self.log = log
        self.tail = tail
        self.fatal = fatal

    def line(self) -> str:
        """Return the error as one line: what, what to do, which log to read."""
        parts = [" ".join(self.what.split())]
        if self.todo:
            parts.append(" ".join(self.todo.split()))
        if self.log is not None:
            parts.append(f"read {self.log}")
        return "; ".join(parts)


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP: not an Exception, so that nothing swallows it.

    clean: the child that ran ended on SIGTERM, so it left no half-written file
    """

    clean = True
