# SPDX-License-Identifier: GPL-2.0
"""Which suites there are and which cases they declare, read from the sources of the tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set, Tuple

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.tests import GUESTS, STAGES, SUITES_KUNIT

# Strings and characters are matched to be left alone: a comment cannot begin in them.
_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b(?:\\\n|.)*", re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+\.[ch])"', re.M)

_KUNIT_CASES = re.compile(r"\bstruct\s+kunit_case\s+(\w+)\s*\[\s*\]\s*=\s*\{(.*?)\};", re.S)
_KUNIT_CASE = re.compile(r"\bKUNIT_CASE(?:_[A-Z_]+)?\s*\(\s*(\w+)")
_KUNIT_SUITE = re.compile(r"\bstruct\s+kunit_suite\s+\w+\s*=\s*\{(.*?)\};", re.S)
_KUNIT_NAME = re.compile(r'\.name\s*=\s*"([^"\n]+)"')
_KUNIT_ITS_CASES = re.compile(r"\.test_cases\s*=\s*(\w+)")

_HARNESS = re.compile(r"^[ \t]*(?:TEST(?:_SIGNAL)?\s*\("
                      r"|TEST_F(?:_SIGNAL|_TIMEOUT)?\s*\(\s*\w+\s*,)\s*(\w+)\s*[,)]", re.M)


def declared(root: Path) -> Dict[str, Tuple[str, ...]]:
    """Return suite -> its cases, in the order of the sources.

    root: the project.

    Raises GateError if a source cannot be read, or a suite of the tables is in none.
    """
    found: Dict[str, List[str]] = {}
    for path in sorted((root / "kunit").glob("*.c")):
        for suite, cases in _kunit(_code(path)):
            found.setdefault(suite, []).extend(cases)
    for suite in SUITES_KUNIT:
        if suite not in found:
            raise GateError(UNUSABLE, f"no file in {root / 'kunit'} declares suite {suite}",
                            "check out the whole project")
    selftests = root / "selftests"
    for item in (item for guest in GUESTS for item in guest.items):
        cases = [item.case] if item.case else list(_harness(selftests, item.program))
        found.setdefault(item.suite, []).extend(cases)
    return {suite: tuple(dict.fromkeys(cases)) for suite, cases in found.items()}


def flavours_of(suite: str) -> Tuple[str, ...]:
    """Return the flavours in which a suite can run; one that no guest runs is KUnit's."""
    selftests = {item.suite for guest in GUESTS for item in guest.items}
    return STAGES["selftests" if suite in selftests else "kunit"].flavours


def _code(path: Path) -> str:
    """Return the text of a source without comments and macro definitions."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise GateError(UNUSABLE, f"cannot read {path}: {error.strerror}",
                        "check out the whole project") from error
    text = _COMMENT.sub(lambda match: " " if match.group()[0] == "/" else match.group(), text)
    return _DEFINE.sub("", text)


def _kunit(code: str) -> Iterator[Tuple[str, List[str]]]:
    """Yield each KUnit suite of a source and its cases."""
    arrays = {array: _KUNIT_CASE.findall(body) for array, body in _KUNIT_CASES.findall(code)}
    for body in _KUNIT_SUITE.findall(code):
        name, cases = _KUNIT_NAME.search(body), _KUNIT_ITS_CASES.search(body)
        if name:
            yield name.group(1), arrays.get(cases.group(1), []) if cases else []


def _harness(selftests: Path, program: str) -> Iterator[str]:
    """Yield the cases of a program: those in its source and in what that includes."""
    todo = [selftests / f"{program}.c"]
    seen: Set[Path] = set()
    while todo:
        path = todo.pop(0)
        seen.add(path.resolve())
        code = _code(path)
        yield from _HARNESS.findall(code)
        for name in _INCLUDE.findall(code):
            file = _included(path.parent / name, selftests)
            if file is not None and file not in seen:
                todo.append(file)


def _included(path: Path, selftests: Path) -> Optional[Path]:
    """Return the file that is included if it is the project's; the harness is the kernel's."""
    file = path.resolve()
    return file if selftests.resolve() in file.parents and file.is_file() else None
