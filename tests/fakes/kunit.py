#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A stand-in for the kernel tree's kunit.py: build, exec and a small parse."""

import json
import os
import re
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["GATE_TEST_FAKES"])

import guest  # noqa: E402
import kernel  # noqa: E402

STATUS = {"ok": "PASS", "not ok": "FAIL"}


def parse(lines):
    """Return (groups, complaints), as the real one words them."""
    groups, complaints = [], []
    group, left = None, 0
    for line in lines:
        line = re.sub(r"^\[ *[\d.]+\](\[ *T\d+\])? ", "", line)
        head = re.match(r"^    # Subtest: (.*)$", line)
        plan = re.match(r"^    1\.\.(\d+)$", line)
        case = re.match(r"^    (ok|not ok) (\d+) (\S+)( # SKIP)?", line)
        if head:
            if group:
                complaints.append(f"{group['name']}: missing subtest result line!")
            group, left = {"name": head.group(1), "test_cases": [], "sub_groups": []}, 0
            groups.append(group)
        elif plan:
            left = int(plan.group(1))
            if not left:
                complaints.append(f"{group['name']}: 0 tests run!")
        elif case:
            left -= 1
            if int(case.group(2)) != len(group["test_cases"]) + 1:
                complaints.append(f"{case.group(3)}: another test number expected")
            status = "SKIP" if case.group(4) else STATUS[case.group(1)]
            group["test_cases"].append({"name": case.group(3), "status": status})
        elif re.match(r"^(ok|not ok) ", line):
            group = None
    if group:
        group["test_cases"] += [{"name": "", "status": "ERROR"}] * left
        complaints.append(f"{group['name']}: missing subtest result line!")
    if not groups:
        complaints.append("<missing>: Could not find any KTAP output.")
    return groups, complaints


def main():
    words = dict(word[2:].split("=", 1) for word in sys.argv[2:] if word.startswith("--"))
    if sys.argv[1] == "build":
        kernel.build(Path(__file__).parents[3], Path(words["build_dir"], "linux"))
    elif sys.argv[1] == "exec":
        print(guest.console(Path(words["build_dir"], "linux").read_text(), "um"), flush=True)
        if guest.FAKE == "hang":
            time.sleep(60)
    elif guest.FAKE != "parser-dies":
        groups, complaints = parse(Path(sys.argv[-1]).read_text().splitlines())
        for complaint in complaints:
            print(f"[00:00:00] [ERROR] Test: {complaint}")
        Path(words["json"]).write_text(json.dumps({"sub_groups": groups, "test_cases": []}))


main()
