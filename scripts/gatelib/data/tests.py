# SPDX-License-Identifier: GPL-2.0
"""What is run in which kernel, and what the tests measure."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

from gatelib.data.kernels import FLAVOURS


class Stage(NamedTuple):
    """What is run in a kernel: in which flavours, with how many CPUs where there is a choice."""
    flavours: Tuple[str, ...]
    smp: int		# if the user names no number
    least_smp: int	# what its witnesses need


STAGES = {
    "kunit": Stage(FLAVOURS, 8, 2),
    "selftests": Stage(("x86_64",), 64, 4),
}

# The one that an explicit --smp is for if both run.
STAGE_OF_SMP = "selftests"

# The suites that have to be in the output of every kernel.
SUITES_KUNIT = ("hwlat", "tick_sched")

# Where kselftests are in a kernel tree, and which of its folders are built.
SELFTESTS_DIR = "tools/testing/selftests"
SELFTESTS_TARGETS = ("ftrace", "timers")

# The module that the tests load, below a build folder and below /lib/modules/RELEASE/kernel.
SELFTESTS_MODULE = "lib/test_lockup.ko"


class Item(NamedTuple):
    """A program that a guest runs; its suite is what the results call it.

    A program that prints no KTAP of its own is one case, which has passed or
    failed only if a line of its output says so, whatever its exit status.
    """
    suite: str
    program: str		# below SELFTESTS_DIR and below where they are installed
    args: Tuple[str, ...] = ()
    files: Tuple[str, ...] = ()	# folders and files that it needs, likewise
    case: str = ""		# "": it prints KTAP
    passed: str = ""		# regular expressions, of such a line
    failed: str = ""


class Guest(NamedTuple):
    """A machine that runs selftests."""
    name: str
    items: Tuple[Item, ...]
    smp: int		# 0: as many as the user wants
    threads: str	# of TCG: "single" host thread for all CPUs, or "multi"


GUESTS = (
    # Far more CPUs than the host has, most of them spinning.
    Guest("stampede", (Item("jiffies-stampede", "timers/jiffies-stampede"),), 0, "single"),
    # All CPUs in the sampling loop; a watchpoint there makes them meet.
    Guest("seqnum", (
        Item("hwlat_seqnum", "ftrace/hwlat_seqnum", files=("ftrace/hwlat_watch",)),
        # Its own KTAP came with 6.5, its summary is in all of them.
        Item("ftracetest", "ftrace/ftracetest",
             ("-vv", "--fail-unsupported", "--fail-unresolved", "-l", "/tmp/logs",
              "test.d/tracer/hwlat_percpu.tc"), ("ftrace",), case="hwlat_percpu",
             passed=r"^# of passed: +1$", failed=r"^# of failed: +1$"),
    ), 16, "single"),
)

# What the picture is called, and its curves: state -> label, colour.
PLOT_NAME = "jiffies_lock-waiters"
PLOT_LABELS = {"broken": ("without the fix", "#c0392b"), "fixed": ("with the fix", "#1f618d")}


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


class Case(NamedTuple):
    """A test case that is a witness of a fix, that may be skipped, or both.

    may_skip names flavours in which the case cannot run, and "upstream" for
    kernels that carry upstream's form of the fix.
    """
    suite: str
    case: str
    fix: Optional[str]
    may_skip: Tuple[str, ...] = ()


# Every case that is not in this table has to pass in every kernel.
CASES = (
    Case("hwlat", "sample_width_change_ignored", "hwlat"),
    # UML has no hardware watchpoints.
    Case("hwlat", "sample_width_loaded_once", "hwlat", ("um",)),
    Case("hwlat", "seqnum_unique_if_interrupted", "hwlat", ("um",)),
    # UML has one CPU up to 6.12 (and --smp is not for it later).
    Case("hwlat", "seqnum_unique_across_cpus", "hwlat", ("um",)),
    # The atomic gate of 7.x waits where trylock does not.
    Case("tick_sched", "held_lock_returns", "tick", ("upstream",)),
    Case("tick_sched", "held_lock_retries", "tick", ("upstream",)),
    Case("tick_sched", "all_cpus_return", "tick", ("um", "upstream")),
    Case("tick_sched", "timekeeper_waits_for_lock", None, ("um",)),
    Case("tick_sched", "waiter_finds_update_done", None, ("um",)),
    Case("jiffies-stampede", "held_lock_keeps_nobody_waiting", "tick"),
    Case("jiffies-stampede", "second_hold_is_the_same", "tick"),
    Case("jiffies-stampede", "jiffies_catch_up", None),
    Case("jiffies-stampede", "stall_is_taken_over", None),
    Case("hwlat_seqnum", "unique_under_load", "hwlat"),
    Case("hwlat_seqnum", "unique_while_times_change", "hwlat"),
    Case("hwlat_seqnum", "unique_while_cpumask_changes", "hwlat"),
    Case("hwlat_seqnum", "unique_over_hotplug", "hwlat"),
    Case("hwlat_seqnum", "restart_begins_at_one", None),
    Case("ftracetest", "hwlat_percpu", "hwlat"),
)
