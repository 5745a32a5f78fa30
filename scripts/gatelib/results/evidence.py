# SPDX-License-Identifier: GPL-2.0
"""What a test program or KUnit says about a case besides its result.

A failed case proves something only if an assertion of its own failed and it
said what it measured.  What KUnit (lib/kunit/test.c, try-catch.c) and
kselftest_harness.h print about a case that crashed, timed out or could not
be set up makes it an error, whatever its result line says.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from gatelib.base import proc

PASS, FAIL, SKIP, ERROR = "PASS", "FAIL", "SKIP", "ERROR"

_FIGURE = re.compile(r"^([a-z]\w*)=(-?[0-9]{1,18})$")

# KUnit: "    # case: what", below "    # Subtest: suite".
_KUNIT_SUITE = re.compile(r"^ {4}# Subtest: (\S+)$")
_KUNIT_SAYS = re.compile(r"^ {4,8}# (\w+): (.*)$")
_KUNIT_ASSERTED = re.compile(r"^(?:EXPECTATION|ASSERTION) FAILED at ")
_KUNIT_CRASHED = re.compile(r"^((?:try (?:faulted|timed out)|test case (?:cleanup )?timed out"
                            r"|test aborted|internal error|failed to initialize|Unknown error).*)")

# The harness: "# file.c:123:case:what", and "# fixture.case: what" in its own words.
_HARNESS_ASSERTED = re.compile(r"^# \S+?:\d+:\w+:Expected ")
_HARNESS_CRASHED = re.compile(
    r"^# (?:\S+: (Test terminated (?:unexpectedly|by timeout).*|Test ended in some other way.*"
    r"|Test exited normally instead.*|SIGALRM handler caught.*|unable to (?:un)?install.*"
    r"|Failed to wait for PID.*)|\S+?:\d+:\w+:(could not be done: .*)"
    r"|(ERROR SPAWNING.*|no active test in SIGALRM.*))$")


class Evidence(NamedTuple):
    """What was said about one case."""
    figures: Dict[str, str]	# measured values, the first of each name
    asserted: bool		# an assertion of the case failed
    crashed: str		# the harness's words for a case that came to no end of its own


NONE = Evidence({}, False, "")


class Result(NamedTuple):
    """One test case as the kernel reported it."""
    suite: str
    case: str
    status: str		# PASS, FAIL, SKIP, ERROR (crashed or missing), or what the parser said
    reason: str = ""	# of a skip or an error
    evidence: Evidence = NONE


class Problem(NamedTuple):
    """Something that makes results untrustworthy."""
    cause: str	# one of CAUSES
    what: str


def with_evidence(result: Result, evidence: Optional[Evidence]) -> Result:
    """Return the result with what was said about it; a crashed case is an error."""
    if evidence is None:
        return result
    if evidence.crashed:
        return result._replace(status=ERROR, reason=evidence.crashed, evidence=evidence)
    return result._replace(evidence=evidence)


def figure(text: str) -> Optional[Tuple[str, str]]:
    """Return name and value if the text is a measured value, name=number."""
    found = _FIGURE.match(text)
    return (found.group(1), found.group(2)) if found else None


def of_kunit(lines: Iterable[str]) -> Dict[Tuple[str, str], Evidence]:
    """Return (suite, case) -> evidence; lines: of a console, without time stamps."""
    suite = ""
    said: Dict[Tuple[str, str], List[str]] = {}
    for line in lines:
        head, says = _KUNIT_SUITE.match(line), _KUNIT_SAYS.match(line)
        if head:
            suite = head.group(1)
        elif says:
            said.setdefault((suite, says.group(1)), []).append(says.group(2).strip())
    return {key: _evidence(texts, _KUNIT_ASSERTED, _KUNIT_CRASHED) for key, texts in said.items()}


def of_harness(lines: Sequence[str]) -> Evidence:
    """Return the evidence in the lines that a kselftest printed while a case ran."""
    measured: Dict[str, str] = {}
    for line in lines:
        value = figure(line[2:]) if line.startswith("# ") else None
        if value:
            measured.setdefault(*value)
    return _evidence(lines, _HARNESS_ASSERTED, _HARNESS_CRASHED)._replace(figures=measured)


def _evidence(texts: Sequence[str], asserted: "re.Pattern[str]",
              crashed: "re.Pattern[str]") -> Evidence:
    measured: Dict[str, str] = {}
    for text in texts:
        value = figure(text)
        if value:
            measured.setdefault(*value)
    bad = next((match for match in map(crashed.match, texts) if match), None)
    words = proc.printable(next(each for each in bad.groups() if each)) if bad else ""
    return Evidence(measured, any(asserted.match(text) for text in texts), words)
