# SPDX-License-Identifier: GPL-2.0
"""What tests measure, and how the report says it."""

from __future__ import annotations

from typing import NamedTuple, Tuple


class Figure(NamedTuple):
    """A measured value: what the test calls it, how the report does, what it is divided by."""
    name: str
    title: str
    per: int = 1


FIGURES = (
    Figure("cpus", "CPUs"),
    Figure("waiters", "waiters"),
    Figure("waiters_timekeeper", "timekeeper"),
    Figure("waiters_idle", "idle"),
    Figure("waiters_other", "others"),
    Figure("longest_wait_us", "longest wait (ms)", 1000),
    Figure("total_wait_us", "total wait (ms)", 1000),
    Figure("longest_stall_us", "longest stall (ms)", 1000),
    Figure("samples", "samples"),
    Figure("duplicates", "duplicates"),
    Figure("gaps", "gaps"),
)


class Words(NamedTuple):
    """How a failed case's figures are said (first row whose names are all there)."""
    names: Tuple[str, ...]
    words: str


MEASURED = (
    Words(("waiters", "cpus", "total_wait_us"), "{waiters} of {cpus} CPUs waited"),
    Words(("waiters", "cpus"), "{waiters} of {cpus} CPUs waited for the lock"),
    Words(("waited", "ticks"), "{waited} ticks waited for the held lock, {ticks} jiffies moved "
          "meanwhile"),
    Words(("loads",), "{loads} loads of sample_width in one sample"),
    Words(("clock_reads",), "the sample ended after {clock_reads} clock reads"),
    Words(("duplicates", "samples", "gaps"), "{duplicates} of {samples} numbers came twice, "
          "{gaps} are missing"),
    Words(("duplicates", "samples"), "{duplicates} of {samples} numbers came twice"),
)

# What the picture is called, and its curves: state -> label, colour.
PLOT_NAME = "jiffies_lock-waiters"
PLOT_LABELS = {
    "broken": ("without a fix", "#c0392b"),
    "upstream": ("with mainline's gate", "#d68910"),
    "fixed": ("with trylock", "#1f618d"),
}
