# SPDX-License-Identifier: GPL-2.0
"""What the tests add to a kernel tree: files of the project's, and lines in the tree's own."""

from __future__ import annotations

from typing import NamedTuple, Tuple, Union

from gatelib.data.tests import SELFTESTS_DIR


class Copies(NamedTuple):
    """Files of the project's that a tree gets; each row has to find one."""
    folder: str		# below the project's root
    glob: str		# of names in folder, "**/" for those in its folders, too
    place: str		# the tree's folder for them


COPIES = (
    Copies("kunit", "trace*.[ch]", "kernel/trace"),
    Copies("kunit", "tick*.[ch]", "kernel/time"),
    Copies("selftests", "**/*", SELFTESTS_DIR),
)

# Not for a tree: below selftests, and names of which a tree has its own.
COPIES_NOT_BELOW = ("selftests/guest/",)
COPIES_NOT_NAMED = ("README", "config", "settings", "Makefile")

# A tree with one of these has the tests, in one form or another.
COPIES_PROOF = ".c"

# Where the text of a ConfigEntry is, in a file called as its symbol.
KCONFIG_DIR = "kunit/kconfig"


class ConfigEntry(NamedTuple):
    """An entry in a Kconfig, behind the one of another symbol."""
    file: str
    symbol: str
    behind: str


class KernelObject(NamedTuple):
    """An object in a Makefile of the kernel, behind the statement that adds another one."""
    file: str
    object: str
    symbol: str
    behind: str


class SourceEnd(NamedTuple):
    """A source that is included at the end of another one."""
    file: str
    include: str
    symbol: str


class SelftestWord(NamedTuple):
    """A word for a variable of a selftest's Makefile, in time for another to be included."""
    file: str
    variable: str
    word: str
    before: str = "lib.mk"
    also: Tuple[str, ...] = ()	# variables in which the word does as well


Insertion = Union[ConfigEntry, KernelObject, SourceEnd, SelftestWord]

_FTRACE = f"{SELFTESTS_DIR}/ftrace/Makefile"
_TIMERS = f"{SELFTESTS_DIR}/timers/Makefile"

# Rows for one file make their lines in this order.
INSERTIONS: Tuple[Insertion, ...] = (
    ConfigEntry("kernel/trace/Kconfig", "HWLAT_TRACER_KUNIT_TEST", "HWLAT_TRACER"),
    KernelObject("kernel/trace/Makefile", "trace_hwlat_test.o", "HWLAT_TRACER_KUNIT_TEST",
                 "trace_hwlat.o"),
    ConfigEntry("kernel/time/Kconfig", "TICK_SCHED_KUNIT_TEST", "HIGH_RES_TIMERS"),
    SourceEnd("kernel/time/tick-sched.c", "tick-sched_test.c", "TICK_SCHED_KUNIT_TEST"),
    SelftestWord(_FTRACE, "TEST_GEN_PROGS", "hwlat_seqnum"),
    SelftestWord(_FTRACE, "TEST_GEN_FILES", "hwlat_watch"),
    SelftestWord(_FTRACE, "LOCAL_HDRS", "trace_instance.h"),
    SelftestWord(_TIMERS, "TEST_GEN_PROGS_EXTENDED", "jiffies-stampede",
             also=("TEST_GEN_PROGS", "DESTRUCTIVE_TESTS")),
    SelftestWord(_TIMERS, "LOCAL_HDRS", "../ftrace/trace_instance.h"),
)
