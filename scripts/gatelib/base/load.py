# SPDX-License-Identifier: GPL-2.0
"""How much of the machine a child got: what it is to blame for, and what the host is.

The kernel counts for each thread how long it ran and how long it was ready to
run and had to wait (/proc/PID/task/TID/schedstat, Documentation/scheduler/
sched-stats.rst). A child that waits for a CPU, or is stopped, cannot be told
to hang; one that runs, or sleeps with nobody in its way, can.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Tuple

_PROC = Path("/proc")
_STOPPED = "T"
# Below this part of the time a child that sleeps is not taken to want a CPU.
_WANTS = 0.05
# A child that gets less than this part of what it wants is starved.
STARVED = 0.5


class Usage(NamedTuple):
    """What a child did with its time, in seconds, summed over its threads but for the last two."""
    cpu: float = 0.0
    waited: float = 0.0	# ready to run, and others had the CPUs
    stopped: float = 0.0	# by a signal, of wall time
    fair: float = 0.0	# wall time less what others took from it: what a bound may count

    @property
    def share(self) -> float:
        """Part of the CPU time it wanted that it got, from 0 to 1; 1 if it wanted none."""
        wanted = self.cpu + self.waited
        got = self.cpu / wanted if wanted else 1.0
        alive = self.fair + self.stopped
        return got * (self.fair / alive if self.stopped and alive else 1.0)

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return Usage(*(a + b for a, b in zip(self, other)))


class Load:
    """Follows a process group from outside."""

    def __init__(self, group: int) -> None:
        """group: the process group, whose leader is the child that was started."""
        self._group = group
        self._before: Dict[Tuple[int, int], Tuple[float, float]] = {}
        self._last = time.monotonic()
        self._cpus = len(os.sched_getaffinity(0))
        self.usage = Usage()

    def sample(self) -> Usage:
        """Add what happened since the last call; return the sum so far."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        cpu = waited = 0.0
        seen: Dict[Tuple[int, int], Tuple[float, float]] = {}
        for pid in _members(self._group):
            for tid, ran, ready in _threads(pid):
                before = self._before.get((pid, tid), (0.0, 0.0))
                cpu += max(0.0, ran - before[0])
                waited += max(0.0, ready - before[1])
                seen[(pid, tid)] = (ran, ready)
        self._before = seen
        # Threads of its own that wait for each other's CPU are nobody else's fault.
        most = min(cpu + waited, self._cpus * passed)
        waited = max(0.0, most - cpu)
        part = min(1.0, cpu / most) if most > _WANTS * passed else 1.0
        stopped = _state(self._group) == _STOPPED
        self.usage = self.usage.plus(Usage(cpu, waited, passed if stopped else 0.0,
                                           0.0 if stopped else part * passed))
        return self.usage


def _members(group: int) -> Iterator[int]:
    """Return the processes of the group."""
    for entry in os.listdir(_PROC):
        if entry.isdigit():
            try:
                if os.getpgid(int(entry)) == group:
                    yield int(entry)
            except OSError:
                pass


def _threads(pid: int) -> Iterator[Tuple[int, float, float]]:
    """Return thread, seconds that it ran, seconds that it waited for a CPU."""
    try:
        for tid in os.listdir(_PROC / str(pid) / "task"):
            words = (_PROC / str(pid) / "task" / tid / "schedstat").read_text().split()
            yield int(tid), int(words[0]) / 1e9, int(words[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return	# it ended, or this kernel does not count


def _state(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
