# SPDX-License-Identifier: GPL-2.0
"""What a made-up guest's init writes: results as the tables expect, or broken on demand."""

import os
import re
import sys
from typing import List

sys.path.insert(0, os.environ["GATE_TEST_SCRIPTS"])

from gatelib.data import tests# noqa: E402

FAKE = os.environ.get("GATE_FAKE", "")
_ITEMS = {item.program: item for guest in tests.GUESTS for item in guest.items}


def _fails(row: tests.Case, kernel: str, cmdline: str) -> bool:
    if FAKE == "selftest-toothless":
        return False
    gate = "gate()" in kernel and "JIFFIES_STAMPEDE_STRICT" not in cmdline
    absent = {"hwlat": "read_once" not in kernel, "tick": "trylock" not in kernel and not gate}
    return absent.get(row.fix or "", False) or (FAKE == "selftest-fails" and row.fix is None)


def _program(item: tests.Item, kernel: str, cmdline: str) -> List[str]:
    """Return what a program prints, and its end as init words it."""
    rows = [row for row in tests.CASES if row.suite == item.suite]
    if item.case:
        bad = _fails(rows[0], kernel, cmdline)
        return ["# samples=9", f"# of {'failed' if bad else 'passed'}:  1",
                "not ok # exit=1" if bad else "ok"]
    lines = ["TAP version 13", f"1..{len(rows)}"]
    good = True
    for number, row in enumerate(rows, 1):
        bad = _fails(row, kernel, cmdline)
        good = good and not bad
        lines += [f"#  RUN           made_up.{row.case} ...", "# cpus=64",
                  f"# waiters={63 if bad else 1}", "# longest_wait_us=1234567"]
        if "TIMELINE" in cmdline:
            lines += ["# timeline=0 0", f"# timeline=10000 {63 if bad else 1}",
                      "# timeline=20000 0"]
        lines.append(f"{'not ok' if bad else 'ok'} {number} made_up.{row.case}")
    if FAKE == "selftest-skips":
        lines[-1] = lines[-1].replace("not ok", "ok") + " # SKIP no test_lockup.ko"
    if FAKE == "selftest-zero":
        lines = ["TAP version 13", "1..0"]
    if FAKE == "selftest-no-inner-plan":
        del lines[1]
    if FAKE == "selftest-case-lost":
        del lines[-1]
    if FAKE == "selftest-timeout":
        return [*lines[:4], "not ok # timeout=300"]
    if FAKE == "selftest-gone":
        return [f"# ./{item.suite}: No such file or directory", "not ok # exit=127"]
    return [*lines, "ok" if good else "not ok # exit=1"]


def results(kernel: str, cmdline: str) -> str:
    """Return what is written to the results port; cmdline: of the kernel."""
    run = re.search(r"gate\.run=(\S+)", cmdline)
    programs = [word.split(":")[0] for word in run.group(1).split(",")] if run else []
    online = "not ok" if FAKE == "selftest-cpus" else "ok"
    lines = ["KTAP version 1", f"1..{len(programs) + 1}", "# cpus=64",
             f"{online} 1 guest/cpus-online"]
    for number, program in enumerate(programs, 2):
        *inner, end = _program(_ITEMS[program], kernel, cmdline)
        verdict, _, note = end.partition(" #")
        lines += [f"# Subtest: {program}", *(f"  {line}" for line in inner),
                  f"{verdict} {number} {program}{' #' if note else ''}{note}"]
    failed = sum(line.startswith("not ok") for line in lines)
    lines.append(f"# gate-init: end items={len(programs) + 1} failed={failed}")
    if FAKE == "selftest-no-end":
        lines.pop()
    if FAKE == "selftest-no-plan":
        del lines[1]
    if FAKE == "selftest-noise":
        lines.insert(5, "ok 2 timers/jiff")
    if FAKE in ("selftest-truncated", "selftest-hang", "selftest-panic"):
        lines = lines[:10]
    if FAKE == "selftest-empty":
        return ""
    return "".join(f"{line}\n" for line in lines)
