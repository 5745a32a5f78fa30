# SPDX-License-Identifier: GPL-2.0
"""From a console log to results, with the tree's own kunit.py as the KTAP parser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.workspace import Workspace
from gatelib.data.console import CONSOLE_BAD, PARSE_BYTES, PARSE_SECONDS
from gatelib.kernels import identity
from gatelib.results.evidence import (ERROR, FAIL, PASS, SKIP, Problem, Result, of_kunit,
                                      with_evidence)

# From best to worst: a case with parameters is as good as its worst one.
_RANK = (SKIP, PASS, FAIL, ERROR)

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\](?:\[\s*[CT]\d+\])? ?")
_BAD = re.compile("|".join(f"(?:{pattern})" for pattern in CONSOLE_BAD))
_SKIPPED = re.compile(r"\bok \d+ (?:- )?(\S+) # SKIP ?(.*)$")
_RESULT = re.compile(r"^( *)(not ok|ok) \d+ (?:- )?(\S+)(?: # ([A-Za-z]+))?")
_VERSION = re.compile(r"^( *)KTAP version \d+$")
_PLAN = re.compile(r"^( *)1\.\.\d+")
_PARSER_ERROR = re.compile(r"\[ERROR\] Test: ?(.*)$")


class Results(NamedTuple):
    """All cases of one boot, and everything that makes them untrustworthy."""
    cases: List[Result]
    problems: List[Problem]


def console_lines(log: Path) -> List[str]:
    """Return the lines of a console log without time stamps and line ends."""
    text = log.read_text("utf-8", "backslashreplace") if log.exists() else ""
    return [_STAMP.sub("", line.rstrip()) for line in text.split("\n")]


def bad_lines(lines: Sequence[str]) -> List[str]:
    """Return the lines with which a kernel reports that something is wrong with it."""
    return [proc.printable(line.strip()) for line in lines if _BAD.search(line.strip())]


def splats(lines: Sequence[str]) -> List[Problem]:
    """Return a problem for each line with which the kernel complains, and no more than three."""
    return [Problem("splat", f"console: {line}") for line in first(bad_lines(lines), 3)]


def collect(log: Path, src: Path, work: Workspace, parse_log: Path, suites: Sequence[str],
            ident: str) -> Results:
    """Read the results of a boot.

    log: console.  src: the kernel tree whose kunit.py parses it.
    parse_log: where that writes.  suites: those that have to be there.
    ident: the build that was to run.
    """
    lines = console_lines(log)
    wrong = identity.complaint(identity.running(lines), ident)
    if wrong:
        return Results([], [Problem("harness", wrong)])
    problems = splats(lines)
    data, complaints = _parse(log, src, work, parse_log)
    reasons = {match.group(1): match.group(2).strip()
               for match in map(_SKIPPED.search, lines) if match}
    cases = list(_flatten(data, reasons))
    told = missing(cases, suites)
    if cases:
        told += list(dict.fromkeys(plan_problems(lines)))
    told += first(lost_problems(lines, cases), 3)
    said = of_kunit(lines)
    return Results([with_evidence(case, said.get((case.suite, case.case)))
                    for case in cases if case.case],
                   [*problems, *complaints, *(Problem("test", what) for what in told)])


def first(lines: List[str], count: int) -> List[str]:
    """Return no more than count lines, and one that says how many are left out."""
    more = len(lines) - count
    return lines[:count] + ([f"and {more} more such lines"] if more > 0 else [])


def _parse(log: Path, src: Path, work: Workspace,
           parse_log: Path) -> Tuple[Dict[str, Any], List[Problem]]:
    """Return kunit.py's JSON object for the log, and its complaints about the log."""
    out = parse_log.with_suffix(".json")
    out.unlink(missing_ok=True)
    parse_log.unlink(missing_ok=True)
    if log.exists() and log.stat().st_size > PARSE_BYTES:
        return {}, [Problem("test", f"the console has more than {PARSE_BYTES >> 20} MiB")]
    # Its exit status says whether all tests passed, which is not the question yet. On results
    # before their plan and on lines that stand twice it goes round for ever (seen with 6.12).
    done = proc.run([str(src / "tools" / "testing" / "kunit" / "kunit.py"), "parse",
                     f"--json={out}", str(log)], log=parse_log, env=work.env,
                    timeout=PARSE_SECONDS, tick=work.progress.tick)
    if done.timed_out:
        return {}, [Problem("harness", "kunit.py did not come to the end of the log within "
                            f"{PARSE_SECONDS} s; see whether its lines are in order")]
    said = parse_log.read_text("utf-8", "replace").splitlines()
    complaints = first([f"kunit.py: {match.group(1)}"
                        for match in map(_PARSER_ERROR.search, said) if match], 3)
    try:
        data = json.loads(out.read_text("utf-8", "replace"))
    except (OSError, ValueError):
        data = None
    problems = [Problem("test", what) for what in complaints]
    if not isinstance(data, dict):
        return {}, [*problems, Problem("harness", "kunit.py gave no results for the log; see its "
                                       f"last words in {parse_log}")]
    return data, problems


def _flatten(data: Dict[str, Any], reasons: Dict[str, str]) -> Iterator[Result]:
    for group in data.get("sub_groups", []):
        suite = str(group.get("name", ""))
        for case in group.get("test_cases", []):
            name = str(case.get("name", ""))
            yield Result(suite, name, str(case.get("status")), reasons.get(name, ""))
        for case in group.get("sub_groups", []):
            name = str(case.get("name", ""))
            yield Result(suite, name, _worst(case), reasons.get(name, ""))
    for alone in data.get("test_cases", []):
        yield Result(str(alone.get("name", "")), "", str(alone.get("status")))


def _worst(group: Dict[str, Any]) -> str:
    """Return the worst status in a group; an unknown one is the worst of all."""
    found = [str(case.get("status")) for case in group.get("test_cases", [])]
    found += [_worst(each) for each in group.get("sub_groups", [])]
    if not found:
        return ERROR
    return max(found, key=lambda status: _RANK.index(status) if status in _RANK else len(_RANK))


def missing(cases: Sequence[Result], suites: Sequence[str]) -> List[str]:
    """Return a line for each suite that has to be there and ran no case."""
    if not any(case.case for case in cases):
        return ["no test ran"]
    problems = []
    for suite in suites:
        if not any(case.suite == suite and case.case for case in cases):
            problems.append(f"suite {suite} is not in the output")
    unnamed = sum(1 for case in cases if not case.case and case.suite not in suites)
    if unnamed:
        problems.append(f"{unnamed} suites without a case")
    return problems


def plan_problems(lines: Sequence[str]) -> List[str]:
    """Return a line for each KTAP version line that no plan follows.

    kunit.py takes a missing plan for "as many as come", so that output which
    lost its plan and its end looks complete.  Cases with parameters, which
    stand eight columns in, have no plan in older kernels.
    """
    problems = []
    pending = False
    for line in lines:
        start = _VERSION.match(line)
        if start and len(start.group(1)) < 8:
            if pending:
                problems.append("a test plan is missing in the output")
            pending = True
        elif _PLAN.match(line):
            pending = False
        elif pending and _RESULT.match(line):
            problems.append("a test plan is missing in the output")
            pending = False
    if pending:
        problems.append("the output ends before its test plan")
    return problems


def lost_problems(lines: Sequence[str], cases: Sequence[Result]) -> List[str]:
    """Return a line for each result line that tells of something bad and is in no result.

    kunit.py counts cases, up to the plan's number of suites. So it loses a
    suite or a case with parameters that fails without one of its own doing so
    (a failing suite_exit, for one), whatever comes after the last suite, and
    every word behind a result other than SKIP.
    """
    failed = [case for case in cases if case.status not in (PASS, SKIP)]
    told = {case.case or case.suite for case in failed} | {case.suite for case in failed}
    suites = {case.suite for case in cases}
    problems = []
    for line in lines:
        match = _RESULT.match(line)
        if line.startswith("Bail out!"):
            problems.append(f"the tests gave up: {proc.printable(line)}")
        elif not match or len(match.group(1)) >= 8:	# what has parameters is as bad as they are
            continue
        elif match.group(4) not in (None, "SKIP"):
            problems.append(f"unknown result: {proc.printable(line.strip())}")
        elif match.group(2) == "not ok" and match.group(3) not in told:
            problems.append(f"suite {match.group(3)} failed although none of its cases did"
                            if match.group(3) in suites else
                            f"kunit.py lost a failure: {proc.printable(line.strip())}")
    return problems
