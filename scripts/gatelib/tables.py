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

ACCELERATORS = ("auto", "kvm", "tcg")

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

# Memory of such a guest in MiB: for itself, and for each CPU.
GUEST_MIB = 512
GUEST_MIB_PER_CPU = 6
# No more of it than this part may be initramfs, which is there twice while it is unpacked.
INITRAMFS_PART = 0.25
# What a guest gets in seconds, and how many more for each CPU.
GUEST_SECONDS = 300
GUEST_SECONDS_PER_CPU = 3
# How long a guest may take to show that KVM works.
PROBE_SECONDS = 20

# More CPUs take x2APIC with interrupt remapping, and from TCG's side this QEMU.
XAPIC_CPUS = 255
X2APIC_QEMU = 9


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

# What no console may show, in any state (regular expressions, searched in
# each line after its time stamp is cut off).
CONSOLE_BAD = (
    r"^BUG[ :]",
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



# Of the bad ones, those after which the kernel does not go on.
CONSOLE_DEAD = (
    r"^Kernel panic - not syncing",
    r"^Attempted to kill init",
)

# Runs the suites and ends the guest.  The kernels are configured not to run
# them by themselves, which newer ones divide into two options.
KUNIT_CMDLINE = ("console=ttyS0 panic=-1 kunit.enable=1 kunit.autorun=1 "
                 "kunit_shutdown=reboot")

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
    # No flavour: what selftests are run with, a picture is drawn with, and
    # scripts/series checks patches with.
    Package("busybox-static", "busybox", ("selftests",)),
    Package("gnuplot-nox", "gnuplot", ("plot",)),
    Package("b4", "b4", ("series",)),
    Package("sparse", "sparse", ("series",)),
    Package("codespell", "codespell", ("series",)),
    Package("perl", "perl", ("series",)),
    Package("python3-sphinx", "sphinx-build", ("docs",)),
)
