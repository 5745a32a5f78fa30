# SPDX-License-Identifier: GPL-2.0
"""What a made-up kernel prints: KTAP as the tables of the gate expect it, or broken on demand."""

import os
import sys
from typing import List, Tuple

sys.path.insert(0, os.environ["GATE_TEST_SCRIPTS"])

from gatelib.data import tests# noqa: E402

FAKE = os.environ.get("GATE_FAKE", "")


def _cases(suite: str, kernel: str, flavour: str) -> List[Tuple[str, str]]:
    """Return (case, result) of a suite; the "kernel" is the text of its sources."""
    absent = {"hwlat": "read_once" not in kernel,
              "tick": "trylock" not in kernel and "gate()" not in kernel}
    cases = [("plain_case", "ok")]
    for row in tests.CASES:
        if row.suite != suite:
            continue
        result = "not ok" if absent.get(row.fix or "") else "ok"
        if flavour in row.may_skip:
            result = "skip: not in this flavour"
        elif row.fix == "tick" and "gate()" in kernel:
            result = "skip: this kernel waits"
        cases.append((row.case, result))
    if FAKE == "fails":
        cases[0] = ("plain_case", "not ok")
    if FAKE == "toothless" and suite == "hwlat":
        cases[1] = (cases[1][0], "ok")
    if FAKE == "skips" and suite == "hwlat":
        cases[1] = (cases[1][0], "skip: did not feel like it")
    return cases


def _suite(number: int, suite: str, kernel: str, flavour: str) -> List[str]:
    cases = [] if FAKE == "zero" else _cases(suite, kernel, flavour)
    lines = ["    KTAP version 1", f"    # Subtest: {suite}", f"    1..{len(cases)}"]
    for i, (case, result) in enumerate(cases, 1):
        if result.startswith("skip: "):
            lines.append(f"    ok {i} {case} # SKIP {result[6:]}")
        else:
            if result == "not ok":
                lines.append(f"    # {case}: EXPECTATION FAILED at made-up.c:{i}")
            lines.append(f"    {result} {i} {case}")
    bad = any(result == "not ok" for _, result in cases) or FAKE == "suite-exit"
    if FAKE == "no-suite-plan":
        del lines[2]
    return [*lines, f"{'not ok' if bad else 'ok'} {number} {suite}"]


def console(kernel: str, flavour: str) -> str:
    """Return the console of a kernel whose sources are the text kernel."""
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
    return "".join(f"[    1.{i:06}] {line}\r\n" for i, line in enumerate(["Linux", *lines]))
