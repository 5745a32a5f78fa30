# SPDX-License-Identifier: GPL-2.0
"""The tables of the gate: everything one edits to add a tree, a fix or a test."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

# Folder of the cache below ${XDG_CACHE_HOME:-~/.cache}.
CACHE_NAME = "hwlat-tick-gate"

STATES = ("as-is", "broken", "fixed")
FLAVOURS = ("um", "x86_64")

DEFAULT_TREES = ("6.12",)
DEFAULT_STATES = ("broken", "fixed")
DEFAULT_SMP = 8

# Older kernels have neither the KUnit nor the tracing code that the tests need.
OLDEST = (6, 1)

# Where linux-source-X.Y is looked for when the machine's own apt has none,
# best first.  A series that is not named here takes SUITES_OTHER.
SUITES = {
    "6.1": ("bookworm",),
    "6.12": ("trixie",),
    "7.2": ("sid",),
    "7.3": ("trixie-backports",),
}
SUITES_OTHER = ("trixie-backports", "sid", "trixie", "bookworm")

# Folders below patches/ in the order in which they are tried; the one named
# like the tree comes before all of them.
PATCH_SETS = ("mainline", "6.12", "6.1", "7.3")
REVERSE_DIR = "reverse"
COVER_LETTER = "0000-*"


class Fix(NamedTuple):
    """One bug's fix: which patches of a set are ours, which patch takes upstream's out."""
    id: str
    patches: Tuple[str, ...]	# globs of file names in a set
    reverse: str		# file in REVERSE_DIR, takes upstream's fix out when applied
    same_as_upstream: bool	# ours and upstream's give the same bytes


FIXES = (
    Fix("hwlat", ("*-tracing-Fix-*",), "hwlat.patch", True),
    Fix("tick", ("*-tick-sched-Split-*", "*-tick-sched-Use-*"), "tick-sched-gate.patch", False),
)

# The suites that have to be in the output of every kernel.
SUITES_KUNIT = ("hwlat", "tick_sched")


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
    # UML has one CPU up to 6.12 (and --smp is not for it later).
    Case("hwlat", "seqnum_unique_across_cpus", "hwlat", ("um",)),
    # The atomic gate of 7.x waits where trylock does not.
    Case("tick_sched", "held_lock_returns", "tick", ("upstream",)),
    Case("tick_sched", "held_lock_retries", "tick", ("upstream",)),
    Case("tick_sched", "all_cpus_return", "tick", ("um", "upstream")),
    Case("tick_sched", "timekeeper_waits_for_lock", None, ("um",)),
    Case("tick_sched", "waiter_finds_update_done", None, ("um",)),
)

# What no console may show, in any state (regular expressions, searched in
# each line after its time stamp is cut off).
CONSOLE_BAD = (
    r"^BUG: ",
    r"^WARNING: ",
    r"^Oops\b",
    r"^general protection fault",
    r"^divide error:",
    r"^Kernel panic - not syncing",
    r"^Unable to handle kernel",
    r"^------------\[ cut here \]------------",
    r"^Call Trace:",
    r"^rcu: INFO: .*(detected|self-detected).* stall",
    r"^INFO: task .* blocked for more than",
    r"^INFO: trying to register non-static key",
    r"^INFO: rcu_.*detected",
    r"watchdog: BUG: soft lockup",
    r"[Hh]ard LOCKUP",
    r"possible (circular|recursive) locking|inconsistent lock state|suspicious RCU usage",
    r"possible irq lock inversion|held lock freed|bad unlock balance",
    r"scheduling while atomic",
    r"sleeping function called from invalid context",
    r"spinlock (bad magic|already unlocked|wrong owner|wrong CPU|lockup|cpu recursion)",
    r"^UBSAN: ",
    r"^BUG KFENCE|BUG: KASAN|BUG: KCSAN|BUG: KFENCE",
    r"^(DEBUG_LOCKS_WARN_ON|ODEBUG): ",
    r"^refcount_t: ",
    r"^list_(add|del) corruption",
    r"^clocksource: timekeeping watchdog on CPU.*unstable",
)



class Splat(NamedTuple):
    """A report that a test cannot do without: once a boot, with its call trace."""
    flavour: str
    line: str	# regular expression


# On one CPU a trylock only ever fails because DEBUG_SPINLOCK lets it, which
# takes that for a bug and says so, once.
CONSOLE_EXPECTED = (
    Splat("um", r"^BUG: spinlock trylock failure on UP on CPU#0"),
)
# How many lines its call trace may be away.
SPLAT_LINES = 12

# Of the bad ones, those after which the kernel does not go on.
CONSOLE_DEAD = (
    r"^Kernel panic - not syncing",
    r"^Attempted to kill init",
)

# Bounds in seconds, for a loaded machine; no test asserts a time.
KUNIT_BOOT_SECONDS = 300
APT_SECONDS = 1800

# Free space in GiB before a tree is unpacked or mirrored, and before a build.
SPACE_TREE = 2.5
SPACE_BUILD = 1.0

# What each flavour boots.
IMAGES = {"um": "linux", "x86_64": "arch/x86/boot/bzImage"}

# Configuration fragments below the project's root, merged in this order.
FRAGMENTS = {
    "um": (".kunitconfig",),
    "x86_64": ("kunit/x86_64.config", ".kunitconfig"),
}

# What kunit.py is asked to change in its own configuration for UML.  Older
# ones ask for a PCI bus that no test here needs, and that warns at boot
# (um_pci_init) where nobody gave it a device.
KCONFIG_ADD_UM = ("CONFIG_UML_PCI_OVER_VIRTIO=n",)


class Package(NamedTuple):
    """A Debian package, and the program or header by which it is known elsewhere."""
    name: str
    program: str
    flavours: Tuple[str, ...] = FLAVOURS


PACKAGES = (
    Package("build-essential", "gcc"),
    Package("git", "git"),
    Package("rsync", "rsync"),
    Package("xz-utils", "xz"),
    Package("python3", "python3"),
    Package("bc", "bc"),
    Package("flex", "flex"),
    Package("bison", "bison"),
    Package("cpio", "cpio"),
    Package("kmod", "depmod"),
    Package("ccache", "ccache"),
    Package("libelf-dev", "", ("x86_64",)),
    Package("libssl-dev", "", ("x86_64",)),
    Package("qemu-system-x86", "qemu-system-x86_64", ("x86_64",)),
    # No flavour: what scripts/series checks patches with.
    Package("b4", "b4", ("series",)),
    Package("sparse", "sparse", ("series",)),
    Package("perl", "perl", ("series",)),
)
