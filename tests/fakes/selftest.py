# SPDX-License-Identifier: GPL-2.0
"""What a made-up guest's init writes: results as the programs declare them, or broken on demand."""

import re
from typing import List

import expected
from expected import FAKE

from gatelib.data import tests

_ITEMS = {item.program: item for guest in tests.GUESTS for item in guest.items}


def _case(number: int, suite: str, case: str, result: str, cmdline: str) -> List[str]:
    if FAKE == "selftest-toothless":
        result = "ok"
    if FAKE == "selftest-fails" and case == expected.always_good(suite):
        result = "not ok"
    lines = [f"#  RUN           made_up.{case} ...", "# cpus=64",
             f"# waiters={63 if result == 'not ok' else 1}", "# longest_wait_us=1234567"]
    if FAKE == "selftest-no-figure":
        lines = lines[:1]
    if "TIMELINE" in cmdline:
        lines += ["# timeline=0 0", f"# timeline=10000 {63 if result == 'not ok' else 1}",
                  "# timeline=20000 0"]
    if result == "not ok":
        lines.append({
            "selftest-signal": f"# made_up.{case}: Test terminated unexpectedly by signal 11",
            "selftest-case-timeout": f"# made_up.{case}: Test terminated by timeout",
            "selftest-no-assertion": "# so it is",
        }.get(FAKE, f"# made-up.c:{number}:{case}:Expected 0 (0) >= 62 (62)"))
    return [*lines, f"{result} {number} made_up.{case}"]


def _program(item: tests.Item, kernel: str, cmdline: str) -> List[str]:
    """Return what a program prints, and its end as init words it."""
    cases = expected.cases(item.suite, kernel, "x86_64")
    if item.case:
        bad = cases[0][1] == "not ok" and FAKE != "selftest-toothless"
        return ["# samples=9", f"# of {'failed' if bad else 'passed'}:  1",
                "not ok # exit=1" if bad else "ok"]
    lines = ["TAP version 13", f"1..{len(cases)}"]
    for number, (case, result) in enumerate(cases, 1):
        lines += _case(number, item.suite, case, result, cmdline)
    good = not any(line.startswith("not ok") for line in lines)
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
    """Return what is written to the results port; cmdline: of the kernel, an image's text."""
    ident = kernel.split("\n")[0]
    if FAKE == "selftest-other-kernel":
        ident = "#0123456789abcdef"
    run = re.search(r"gate\.run=(\S+)", cmdline)
    programs = [word.split(":")[0] for word in run.group(1).split(",")] if run else []
    online = "not ok" if FAKE == "selftest-cpus" else "ok"
    lines = ["KTAP version 1", f"1..{len(programs) + 1}",
             f"# kernel={ident} SMP Thu Jan  1 00:00:00 UTC 1970", "# cpus=64",
             f"{online} 1 guest/cpus-online"]
    if FAKE == "selftest-no-version":
        del lines[2]
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
        lines.insert(6, "ok 2 timers/jiff")
    if FAKE in ("selftest-truncated", "selftest-hang", "selftest-panic"):
        lines = lines[:11]
    if FAKE == "selftest-empty":
        return ""
    return "".join(f"{line}\n" for line in lines)
