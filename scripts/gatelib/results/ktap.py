# SPDX-License-Identifier: GPL-2.0
"""From what a guest wrote on its results port to results.

A reader of its own, because the kernel's kunit.py takes other KTAP only: it
looks for the version line before "# Subtest:", while a kselftest prints its
own below that of the guest's init, and it then counts the program's result
among those of its cases (tried with 6.1, 6.12 and 7.3).  Here everything has
to be as selftests/guest/init.c and the harness print it; what is missing,
doubled or out of order is a problem, and no result is ever guessed.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from gatelib.base import proc
from gatelib.data.tests import Item
from gatelib.kernels import identity
from gatelib.results.evidence import (ERROR, FAIL, PASS, SKIP, Evidence, Problem, Result,
                                      of_harness, with_evidence)

_INDENT = "  "
_VERSION = re.compile(r"^(?:K?TAP version \d+)$")
_PLAN = re.compile(r"^1\.\.(\d{1,9})(?: # SKIP.*)?$")
_RESULT = re.compile(r"^(ok|not ok) (\d{1,9})(?: (?:- )?([^#\s]\S*))?(?: +# ?(.*))?$")
_LIKE_RESULT = re.compile(r"^(not )?ok\b|^Bail out")
_RUNS = re.compile(r"^# +RUN +(\S+) \.\.\.$")
_FIGURE = re.compile(r"^# ([a-z]\w*)=(\S.*)$")
_SUBTEST = re.compile(r"^# Subtest: (\S+)$")
_END = re.compile(r"^# gate-init: end items=(\d{1,9}) failed=(\d{1,9})$")
_KERNEL = "# kernel="
_CPUS = "guest/cpus-online"


class Figures(NamedTuple):
    """What a case measured in one go; a case may do so several times."""
    suite: str
    case: str	# "" for what init says of the guest
    values: Dict[str, str]


class Reading(NamedTuple):
    """What the results port said, and everything that makes it untrustworthy."""
    cases: List[Result]
    figures: List[Figures]
    timeline: List[Tuple[int, int]]	# of the first hold: microseconds, CPUs waiting from then on
    problems: List[Problem]

    def bad(self, *lines: str, cause: str = "test") -> None:
        """Add problems."""
        self.problems.extend(Problem(cause, line) for line in lines)


class _Outer(NamedTuple):
    """A result line of init, with what came before it."""
    number: int
    name: str
    ok: bool
    note: str
    subtest: Optional[str]
    lines: List[str]	# the program's


def read(text: str, items: Sequence[Item], ident: str) -> Reading:
    """Read the text of a results port.

    items: what the guest was to run, in order.  ident: the build that was to run.
    """
    reading = Reading([], [], [], [])
    lines = text.replace("\r", "").split("\n")
    if not text.strip():
        reading.bad("the guest wrote no results")
        return reading
    versions = dict.fromkeys(line[len(_KERNEL):] for line in lines if line.startswith(_KERNEL))
    wrong = identity.complaint(" and ".join(versions) or None, ident)
    if wrong:
        reading.bad(wrong, cause="harness")
        return reading
    outers = _outers(lines, len(items) + 1, reading)
    names = [_CPUS, *(item.program for item in items)]
    for outer in outers:
        if outer.number > len(names) or outer.name != names[outer.number - 1]:
            reading.bad(f"unexpected result {outer.number} {outer.name}")
        elif outer.number == 1:
            if not outer.ok:
                reading.bad("not all CPUs came online")
        else:
            _item(items[outer.number - 2], outer, reading)
    there = {outer.name for outer in outers}
    reading.bad(*[f"{name} has no result" for name in names if name not in there])
    return reading


def _outers(lines: Sequence[str], count: int, reading: Reading) -> List[_Outer]:
    """Return init's result lines in order; see to its own version, plan and end."""
    found: List[_Outer] = []
    inner: List[str] = []
    subtest: Optional[str] = None
    values: Dict[str, str] = {}
    heads: List[str] = []
    ended: Optional[Tuple[int, int]] = None
    for line in lines:
        result, figure, name = _RESULT.match(line), _FIGURE.match(line), _SUBTEST.match(line)
        end = _END.match(line)
        if line.startswith(_INDENT):
            inner.append(line[len(_INDENT):])
        elif _VERSION.match(line) or _PLAN.match(line):
            heads.append(line.split()[0])
        elif result:
            found.append(_Outer(int(result.group(2)), result.group(3) or "",
                                result.group(1) == "ok", result.group(4) or "", subtest, inner))
            inner, subtest = [], None
        elif figure:
            values.setdefault(figure.group(1), figure.group(2))
        elif name:
            subtest = name.group(1)
        elif end and ended is None:
            ended = int(end.group(1)), int(end.group(2))
        elif line:
            reading.bad(f"unknown line in the results: {proc.printable(line)}")
    if values:
        reading.figures.append(Figures("guest", "", values))
    if heads != ["KTAP", f"1..{count}"]:
        reading.bad("the guest's test plan is missing or wrong")
    if [outer.number for outer in found] != list(range(1, len(found) + 1)):
        reading.bad("the guest's results are not in order")
    if ended is None:
        reading.bad("the results are cut off: the guest's end line is missing")
    elif ended != (count, sum(not outer.ok for outer in found)) or inner:
        reading.bad("the guest's end line does not agree with its results")
    return found


def _item(item: Item, outer: _Outer, reading: Reading) -> None:
    """Add what one program said."""
    if outer.subtest != item.program:
        reading.bad(f"{item.program} has no start line")
    died = re.match(r"(timeout|signal)=(\d+)|exit=12[67]\b", outer.note)
    if died:
        reading.bad(f"{item.program}: " + {
            "timeout": f"was stopped after {died.group(2)} s",
            "signal": f"was killed by signal {died.group(2)}",
        }.get(died.group(1) or "", "could not be started: " + _last(outer.lines)),
                    cause="hang" if died.group(1) == "timeout" else "test")
    before = len(reading.cases)
    if item.case:
        _plain(item, outer, reading, died is not None)
    else:
        _ktap(item, outer.lines, reading)
    mine = reading.cases[before:]
    good = bool(mine) and all(case.status in (PASS, SKIP) for case in mine)
    if good != outer.ok and not died:
        said = f"{'ok' if outer.ok else 'not ok'} # {outer.note}".rstrip(" #")
        reading.bad(f"{item.program} ended \"{said}\", which its cases do not explain")


def _last(lines: Sequence[str]) -> str:
    said = [line.lstrip("# ") for line in lines if line.strip("# ")]
    return proc.printable(said[-1]) if said else "no word why"


def _plain(item: Item, outer: _Outer, reading: Reading, died: bool) -> None:
    """Add the one case of a program without KTAP."""
    passed = any(re.match(item.passed, line) for line in outer.lines)
    failed = any(re.match(item.failed, line) for line in outer.lines)
    status = ERROR
    if passed != failed and not died and passed == outer.ok:
        status = PASS if passed else FAIL
    values: Dict[str, str] = {}
    for line in outer.lines:
        figure = _FIGURE.match(line.strip())
        if figure:
            values[figure.group(1)] = figure.group(2)
    if values:
        reading.figures.append(Figures(item.suite, item.case, values))
    # Its own word that it failed is its assertion.
    evidence = Evidence({key: value for key, value in values.items() if value.isdigit()}, failed,
                        "")
    reading.cases.append(Result(item.suite, item.case, status, "", evidence))


def _ktap(item: Item, lines: Sequence[str], reading: Reading) -> None:
    """Add the cases of a program that prints KTAP."""
    plans: List[int] = []
    cases: List[Result] = []
    values: List[Dict[str, str]] = []
    runs = ""
    problems = []
    begin = 0
    for number, line in enumerate(lines):
        plan, result, figure = _PLAN.match(line), _RESULT.match(line), _FIGURE.match(line)
        run = _RUNS.match(line)
        if plan:
            plans.append(int(plan.group(1)))
        elif run:
            runs = _short(run.group(1))
            # What was said before it is not this case's.
            begin, values = number + 1, []
        elif figure and figure.group(1) == "timeline":
            _time(figure.group(2), len(cases), values, reading)
        elif figure:
            if not values or figure.group(1) in values[-1]:
                values.append({})
            values[-1][figure.group(1)] = figure.group(2)
        elif result:
            # A skipped case of an older harness has no name here.
            case = with_evidence(_case(item, result, _short(result.group(3) or "") or runs),
                                 of_harness(lines[begin:number]))
            begin = number + 1
            if int(result.group(2)) != len(cases) + 1 or case.case in [each.case for each in cases]:
                problems.append(f"{item.program}: result {case.case} is out of order")
            cases.append(case)
            reading.figures.extend(Figures(item.suite, case.case, each) for each in values)
            values, runs = [], ""
        elif _LIKE_RESULT.match(line):
            problems.append(f"{item.program}: unknown result: {proc.printable(line)}")
    reading.cases.extend(cases)
    reading.bad(*problems)
    reading.bad(*_plan_problems(item, plans, cases, runs))


def _plan_problems(item: Item, plans: List[int], cases: List[Result], runs: str) -> List[str]:
    if len(plans) != 1:
        return [f"{item.program}: the test plan is missing" if not plans else
                f"{item.program}: there is more than one test plan"]
    if not plans[0]:
        return [f"{item.program}: no test ran"]
    if plans[0] != len(cases):
        where = f", cut off in {runs}" if runs else ""
        return [f"{item.program}: {len(cases)} of {plans[0]} results{where}"]
    return []


def _short(name: str) -> str:
    """Return the harness's name of a case without the fixture's."""
    return name.split(".", 1)[-1]


def _case(item: Item, result: "re.Match[str]", name: str) -> Result:
    note = result.group(4) or ""
    word, _, reason = note.partition(" ")
    if word.upper() == "SKIP":
        return Result(item.suite, name, SKIP, reason.strip())
    if word.upper() in ("XFAIL", "TODO"):
        return Result(item.suite, name, ERROR)
    return Result(item.suite, name, PASS if result.group(1) == "ok" else FAIL)


def _time(text: str, cases: int, values: List[Dict[str, str]], reading: Reading) -> None:
    """Take a point of the timeline of the first hold of the first case, leave the others."""
    point = re.fullmatch(r"(\d{1,15}) (\d{1,9})", text)
    if point and not cases and len(values) == 1:
        reading.timeline.append((int(point.group(1)), int(point.group(2))))
