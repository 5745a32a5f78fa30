# SPDX-License-Identifier: GPL-2.0
"""Whose fault a failure is, and the exit status that follows."""

from __future__ import annotations

# Exit statuses of the gate.
HOLDS = 0	# every test did what it must
VERDICT = 1	# the kernel is to blame: a test, or it does not build, panics or hangs
UNUSABLE = 2	# the call or the tree cannot be used
MACHINE = 3	# the gate or its host is to blame; nothing is known about the kernel

# What results.json calls it -> exit status.
CAUSES = {
    "test": VERDICT,		# a case did not do what it must
    "splat": VERDICT,		# the console says that something is wrong
    "panic": VERDICT,
    "hang": VERDICT,		# it had the time and did not come to its end
    "build": VERDICT,		# the kernel does not build
    "selftest-build": VERDICT,	# the selftests do not build in this tree
    "harness": MACHINE,		# another kernel ran than was meant, a tool of the gate failed
    "host": MACHINE,		# disk, QEMU, apt, or no CPU time
}
