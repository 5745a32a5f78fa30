# SPDX-License-Identifier: GPL-2.0
"""Whether a kernel did what it must: results against the table of witnesses."""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gatelib.data.tests import CASES, Case
from gatelib.data.trees import FIXES
from gatelib.results.kunit import FAIL, PASS, SKIP, Result
from gatelib.trees.patches import ABSENT, UPSTREAM

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

_ROWS: Dict[Tuple[str, str], Case] = {(row.suite, row.case): row for row in CASES}


class Verdict(NamedTuple):
    """One result and what became of it."""
    result: Result
    must: str		# "pass" or "fail"
    outcome: str	# PASSED: as it must; FAILED; SKIPPED: where it may be
    why: str		# of FAILED, for the user


def row_of(result: Result) -> Optional[Case]:
    """Return the case's row in tables.CASES, if it has one."""
    return _ROWS.get((result.suite, result.case))


def _may_skip(row: Optional[Case], flavour: str, present: Mapping[str, str]) -> bool:
    if row is None:
        return False
    upstream = row.fix is not None and present[row.fix] == UPSTREAM
    return flavour in row.may_skip or (upstream and "upstream" in row.may_skip)


def judge_case(result: Result, flavour: str, present: Mapping[str, str]) -> Verdict:
    """Judge one result.

    flavour: of the kernel.  present: fix id -> ABSENT, OURS or UPSTREAM in it.
    """
    row = row_of(result)
    fix = row.fix if row else None
    red = fix is not None and present[fix] == ABSENT
    must = "fail" if red else "pass"
    if result.status == SKIP:
        if _may_skip(row, flavour, present):
            return Verdict(result, must, SKIPPED, "")
        reason = f" ({result.reason})" if result.reason else ""
        return Verdict(result, must, FAILED, f"was skipped{reason} where it has to run")
    if result.status == PASS:
        if red:
            return Verdict(result, must, FAILED,
                          f"passes although fix {fix} is absent: the test has lost its teeth")
        return Verdict(result, must, PASSED, "")
    if result.status == FAIL:
        return Verdict(result, must, PASSED if red else FAILED, "" if red else "fails")
    # A crashed or unknown witness proves nothing, so this is red in every state.
    return Verdict(result, must, FAILED, f"has status {result.status}: crashed or cut off")


def judge(results: Sequence[Result], flavour: str, present: Mapping[str, str],
          suites: Iterable[str]) -> List[Verdict]:
    """Judge all results of a kernel, and add a failure for each case of the table that is missing.

    suites: those that had to run; one that did not run at all is a problem
    of its own, so that its cases are not named one by one.
    """
    verdicts = [judge_case(result, flavour, present) for result in results]
    ran = {(result.suite, result.case) for result in results}
    wanted = set(suites) & {result.suite for result in results}
    for key, row in _ROWS.items():
        if row.suite in wanted and key not in ran:
            verdicts.append(Verdict(Result(row.suite, row.case, "none"), "pass", FAILED,
                                 "did not run at all"))
    return verdicts


def toothless(flavours: Mapping[str, Sequence[Verdict]], present: Mapping[str, str],
              suites: Iterable[str]) -> List[str]:
    """Return a line for each fix of which no witness ran, in one tree and state.

    flavours: flavour -> all that was verdicts there.  suites: those that had to run.
    """
    wanted = set(suites)
    lines = []
    for fix in FIXES:
        rows = [row for row in CASES if row.fix == fix.id and row.suite in wanted]
        if present[fix.id] == UPSTREAM and all("upstream" in row.may_skip for row in rows):
            continue
        ran = any(row_of(each.result) in rows and each.result.status in (PASS, FAIL)
                  for verdicts in flavours.values() for each in verdicts)
        if not ran:
            lines.append(f"no witness of fix {fix.id} ran in {', '.join(flavours)}")
    return lines
