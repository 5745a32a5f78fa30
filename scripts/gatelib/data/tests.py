# SPDX-License-Identifier: GPL-2.0
"""What is run in which kernel, and what the tests measure."""

from __future__ import annotations

from typing import NamedTuple, Tuple

from gatelib.data.kernels import FLAVOURS


class Stage(NamedTuple):
    """What is run in a kernel: in which flavours, with how many CPUs where there is a choice."""
    flavours: Tuple[str, ...]
    smp: int		# if the user names no number
    least_smp: int	# what its witnesses need


STAGES = {
    "kunit": Stage(FLAVOURS, 8, 3),
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


# Programs that are compiled for the guests, and so can be of an older build.
PROGRAMS = ("timers/jiffies-stampede", "ftrace/hwlat_seqnum", "ftrace/hwlat_watch")


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
