# SPDX-License-Identifier: GPL-2.0
"""What a made-up kernel prints: KTAP as the suites declare it, or broken on demand."""

from typing import List

import expected
from expected import FAKE

from gatelib.data import tests


def banner(kernel: str) -> str:
    """Return the line in which the kernel, an image, says which build it is."""
    ident = "#0123456789abcdef" if FAKE == "other-kernel" else kernel.split("\n")[0]
    return f"Linux version 6.12.7 (gate@gate) (made up) {ident} SMP Thu Jan  1 00:00:00 UTC 1970"


def _case(number: int, suite: str, case: str, result: str) -> List[str]:
    if FAKE == "fails" and case == expected.always_good(suite):
        result = "not ok"
    if FAKE == "toothless" and result == "not ok":
        result = "ok"
    if FAKE == "skips" and case == expected.witness(suite):
        result = "skip"
    if FAKE == "runs-skipped" and result == "skip":
        result = "ok"
    if result == "skip":
        return [f"    ok {number} {case} # SKIP not in this flavour"]
    lines = [f"    # {case}: waiters=7", f"    # {case}: cpus=8"]
    if FAKE == "no-figure":
        lines = []
    if result == "not ok":
        lines += [f"    # {case}: EXPECTATION FAILED at made-up.c:{number}"]
        if FAKE in ("try faulted", "try timed out", "failed to initialize: -12",
                    "internal error occurred during test case cleanup: -1"):
            lines[-1] = f"    # {case}: {FAKE}"
        if FAKE == "no-assertion":
            lines.pop()
    return [*lines, f"    {result} {number} {case}"]


def _suite(number: int, suite: str, kernel: str, flavour: str) -> List[str]:
    cases = [] if FAKE == "zero" else expected.cases(suite, kernel, flavour)
    if FAKE == "case-lost":
        cases = cases[1:]
    lines = ["    KTAP version 1", f"    # Subtest: {suite}", f"    1..{len(cases)}"]
    for i, (case, result) in enumerate(cases, 1):
        lines += _case(i, suite, case, result)
    bad = any(line.startswith("    not ok") for line in lines) or FAKE == "suite-exit"
    if FAKE == "no-suite-plan":
        del lines[2]
    return [*lines, f"{'not ok' if bad else 'ok'} {number} {suite}"]


def console(kernel: str, flavour: str) -> str:
    """Return the console of a kernel, the text of an image."""
    suites = tests.SUITES_KUNIT[:1] if FAKE == "missing-suite" else tests.SUITES_KUNIT
    lines = ["KTAP version 1", f"1..{len(suites)}"]
    for number, suite in enumerate(suites, 1):
        lines += _suite(number, suite, kernel, flavour)
    if FAKE == "empty":
        return ""
    if FAKE == "no-ktap":
        lines = ["nothing but talk"]
    if FAKE == "no-plan":
        del lines[1]
    if FAKE == "truncated":
        lines = lines[:len(lines) // 2]
    if FAKE == "splat":
        lines.insert(6, "WARNING: CPU: 1 PID: 7 at kernel/made/up.c:12 made_up+0x1/0x2")
    if FAKE == "panic":
        lines = lines[:6] + ["Kernel panic - not syncing: made up", "---[ end of it"]
    if FAKE == "hang":
        lines = lines[:6]
    head = [] if FAKE == "no-banner" else [banner(kernel)]
    return "".join(f"[    1.{i:06}] {line}\r\n" for i, line in enumerate([*head, *lines]))
