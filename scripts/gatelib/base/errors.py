# SPDX-License-Identifier: GPL-2.0
"""The one exception that carries an exit status and a cause."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from gatelib.data.causes import CAUSES, HOLDS, MACHINE, UNUSABLE, VERDICT

__all__ = ["HOLDS", "MACHINE", "UNUSABLE", "VERDICT", "GateError", "Interrupted", "blamed"]


class GateError(Exception):
    """Ends the gate, or one kernel of a run, with a line for the user.

    status: one of UNUSABLE and MACHINE, or VERDICT where the kernel is to blame
    what: what is wrong, one line without a final stop
    todo: what the user can do about it, one line without a final stop
    log: the log to read, if there is one
    tail: last lines of that log, worth showing at once
    fatal: no other kernel of the same run can do better
    cause: one of CAUSES
    """

    def __init__(self, status: int, what: str, todo: str = "", *,
                 log: Optional[Path] = None, tail: str = "",
                 fatal: bool = False, cause: str = "harness") -> None:
        super().__init__(what)
        self.status = status
        self.what = what
        self.todo = todo
        self.log = log
        self.tail = tail
        self.fatal = fatal
        self.cause = cause

    def line(self) -> str:
        """Return the error as one line: what, what to do, which log to read."""
        parts = [" ".join(self.what.split())]
        if self.todo:
            parts.append(" ".join(self.todo.split()))
        if self.log is not None:
            parts.append(f"read {self.log}")
        return "; ".join(parts)


def blamed(cause: str, what: str, todo: str, *, log: Optional[Path] = None,
           tail: str = "") -> GateError:
    """Return the error for something that went wrong with one kernel.

    cause: one of CAUSES, which gives the status.  The rest: as for GateError.
    """
    return GateError(CAUSES[cause], what, todo, log=log, tail=tail, cause=cause)


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP: not an Exception, so that nothing swallows it.

    clean: the child that ran ended on SIGTERM, so it left no half-written file
    """

    clean = True
