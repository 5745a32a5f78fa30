# SPDX-License-Identifier: GPL-2.0
"""Whether a kernel did what it must: results against what is expected."""

from __future__ import annotations

from typing import Collection, List, Mapping, NamedTuple, Sequence

from gatelib.data.figures import MEASURED
from gatelib.results.evidence import ERROR, FAIL, PASS, SKIP, Result
from gatelib.results.expectations import Expectations, Line

PASSED, FAILED, SKIPPED, FLAKED = "passed", "failed", "skipped", "flaked"


class Verdict(NamedTuple):
    """One result and what became of it."""
    result: Result
    must: str		# "pass", "fail" or "skip", or "run" for a flake
    outcome: str	# PASSED: as it must; FAILED; SKIPPED: as it must; FLAKED: decides nothing
    why: str		# of FAILED, for the user


def measured(result: Result) -> str:
    """Return what the case measured, in words where the table has them."""
    figures = result.evidence.figures
    for row in MEASURED:
        if all(name in figures for name in row.names):
            return row.words.format(**figures)
    return ", ".join(f"{name}={value}" for name, value in figures.items())


def judge_case(result: Result, line: "Line | None", known: Sequence[str] = ()) -> Verdict:
    """Judge one result.

    line: what is expected of it, None: that it passes.
    known: names of expectations that would allow its failure.
    """
    if line is None:
        return _must_pass(result, known)
    if line.kind == "flakes":
        return Verdict(result, "run", FLAKED, "")
    if line.kind == "skips":
        if result.status == SKIP:
            return Verdict(result, "skip", SKIPPED, "")
        return Verdict(result, "skip", FAILED, f"has status {result.status} and is to be skipped; "
                       f"remove the line {line.where}")
    return _must_fail(result, line)


def _must_pass(result: Result, known: Sequence[str]) -> Verdict:
    if result.status == PASS:
        return Verdict(result, "pass", PASSED, "")
    if result.status == SKIP:
        reason = f" ({result.reason})" if result.reason else ""
        return Verdict(result, "pass", FAILED, f"was skipped{reason} where it has to run; mend the "
                       "configuration, or list it in a -skips.txt")
    if result.status != FAIL:
        return Verdict(result, "pass", FAILED, _crashed(result))
    words = measured(result)
    hint = " or ".join(f"--expect {name}" for name in known)
    return Verdict(result, "pass", FAILED, "fails" + (f": {words}" if words else "")
                   + (f"; if that is known of this tree: {hint}" if hint else
                      "; mend the kernel or the test"))


def _must_fail(result: Result, line: Line) -> Verdict:
    if result.status == PASS:
        return Verdict(result, "fail", FAILED, "passes and is to fail; if it is mended remove the "
                       f"line {line.where}, else the test has lost its teeth")
    if result.status == SKIP:
        reason = f" ({result.reason})" if result.reason else ""
        return Verdict(result, "fail", FAILED, f"was skipped{reason} and is to fail by "
                       f"{line.where}; mend the configuration, or list it in a -skips.txt")
    if result.status != FAIL:
        return Verdict(result, "fail", FAILED, _crashed(result))
    # Red for another reason than its own proves nothing.
    if not result.evidence.asserted:
        return Verdict(result, "fail", FAILED, "failed without a failed assertion of its own; see "
                       "what stopped it")
    if not result.evidence.figures:
        return Verdict(result, "fail", FAILED, "failed without a measured figure; see what kept it "
                       "from measuring")
    return Verdict(result, "fail", PASSED, "")


def _crashed(result: Result) -> str:
    what = result.reason or "crashed or cut off"
    return f"has status {result.status}: {what}; see what its log says around it"


def judge(results: Sequence[Result], flavour: str, expected: Expectations,
          declared: Mapping[str, Collection[str]], known: Mapping[str, Sequence[str]],
          suites: Sequence[str]) -> List[Verdict]:
    """Judge all results of a kernel, and add a failure for each case that is missing.

    declared: suite -> its cases.  known: "suite.case" -> names of expectations in which it fails.
    suites: those that had to run; one that did not run at all is a problem
    of its own, so that its cases are not named one by one.
    """
    verdicts = []
    for result in results:
        name = f"{result.suite}.{result.case}"
        verdicts.append(judge_case(result, expected.of(name, flavour), known.get(name, ())))
    ran = {(result.suite, result.case) for result in results}
    for suite in suites:
        if suite not in {result.suite for result in results}:
            continue
        for case in declared.get(suite, ()):
            if (suite, case) not in ran:
                line = expected.of(f"{suite}.{case}", flavour)
                where = f"; it is listed in {line.where}" if line else ""
                verdicts.append(Verdict(Result(suite, case, ERROR), "pass", FAILED,
                                        f"did not run at all{where}; see whether the kernel was "
                                        "built with it"))
    return verdicts
