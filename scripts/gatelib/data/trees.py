# SPDX-License-Identifier: GPL-2.0
"""Kernel trees, their states, the sets of patches, and the fixes."""

from __future__ import annotations

from typing import NamedTuple, Tuple

# Folder of the cache below ${XDG_CACHE_HOME:-~/.cache}.
CACHE_NAME = "hwlat-tick-gate"
STATES = ("as-is", "broken", "fixed", "upstream")
# What becomes of tests that a tree has already.
TESTS = ("ours", "tree")
DEFAULT_TREES = ("6.12",)
DEFAULT_STATES = ("broken", "fixed")

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
    """One bug's fix: which patches of a set are ours, which take upstream's out."""
    id: str
    patches: Tuple[str, ...]	# globs of file names in a set
    reverse: Tuple[str, ...]	# files in REVERSE_DIR, the first that fits takes upstream's fix out
    same_as_upstream: bool	# ours and upstream's give the same bytes
    # Without the fix the expectation ID-absent holds, and with upstream's form of it:
    upstream: Tuple[str, ...] = ()


FIXES = (
    Fix("hwlat", ("*-tracing-Fix-*",), ("hwlat.patch",), True),
    Fix("tick", ("*-tick-sched-Split-*", "*-tick-sched-Use-*"),
        ("tick-sched-gate.patch", "tick-sched-gate-6.1.patch"), False,
        ("tick-atomic-gate",)),
)

# What Debian's series are known to fail as they come; a later one is like the last of these.
KNOWN = {
    "6.1": ("tick-absent",),
    "6.12": ("tick-absent",),
    "7.2": ("tick-atomic-gate",),
}

# Free space in GiB before a tree is unpacked or mirrored.
SPACE_TREE = 2.5
