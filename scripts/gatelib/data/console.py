# SPDX-License-Identifier: GPL-2.0
"""What a console says when something is wrong."""

from __future__ import annotations

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

# What kunit.py's parser gets: seconds, and bytes of a console.
PARSE_SECONDS = 60
PARSE_BYTES = 16 << 20
