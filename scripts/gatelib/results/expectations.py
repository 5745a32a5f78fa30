# SPDX-License-Identifier: GPL-2.0
"""What is known to fail, to be skipped or to be flaky: the expectation files.

They are made like those of drivers/gpu/drm/ci/xfails/ in the kernel tree, see
Documentation/adding.rst.  Nothing in them is taken on trust: a line has to
name a case that there is, once, with a reason and a link above it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import (Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple)

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.base.proc import printable
from gatelib.results.declared import flavours_of

FAILS, SKIPS, FLAKES = "fails", "skips", "flakes"
KINDS = (FAILS, SKIPS, FLAKES)

_MOST_BYTES = 1 << 20
_FILES = "NAME-fails.txt, NAME-skips.txt or NAME-flakes.txt"

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_FILE = re.compile(r"(.+)-(fails|skips|flakes)\.txt")
_LINE = re.compile(r"([A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)(?:,([A-Za-z0-9_-]+))?")

# What a field of a comment is called, here and in drm-ci -> what it is.
_FIELDS = {
    "link": "Link:",
    "bug report": "Bug report:",
    "board": "Board:", "board name": "Board:",
    "version": "Version:", "linux version": "Version:",
    "rate": "Rate:", "failure rate": "Rate:",
}
_NO_REASON = ("spdx-license-identifier", "igt version")
_WANTED = {FAILS: ("Link:",), SKIPS: ("Link:",),
           FLAKES: ("Link:", "Bug report:", "Board:", "Version:", "Rate:")}


class Line(NamedTuple):
    """One line of an expectation file."""
    case: str		# "suite.case"
    flavour: str	# "": all
    kind: str		# one of KINDS
    where: str		# "tick-absent-fails.txt:7"
    name: str		# of the expectation: "tick-absent"


class Expectations:
    """All lines that count in a run.

    lines: in the order in which they were read.  names: as the user gave them.
    """

    def __init__(self, lines: Iterable[Line], names: Iterable[str]) -> None:
        """Take lines and names as they are: load() is what checks them."""
        self.lines = tuple(lines)
        self.names = tuple(names)
        self._of: Dict[str, List[Line]] = {}
        for line in self.lines:
            self._of.setdefault(line.case, []).append(line)

    def of(self, case: str, flavour: str) -> Optional[Line]:
        """Return the line that counts for a case in a flavour, None if there is none.

        case: "suite.case".  A skip comes before all others, since what cannot
        run cannot fail; then a line with the flavour before one without.
        """
        lines = [line for line in self._of.get(case, ()) if line.flavour in ("", flavour)]
        return min(lines, key=lambda line: (line.kind != SKIPS, not line.flavour), default=None)


class _File(NamedTuple):
    path: Path
    shown: str	# in messages
    name: str
    kind: str


def load(folder: Path, names: Sequence[str], declared: Mapping[str, Collection[str]],
         flavours: Collection[str]) -> Expectations:
    """Read and check expectation files.

    folder: where a NAME is looked up.  names: each a NAME, or the path of a
    file; a file that is named more than once is read once.  declared: suite ->
    its cases.  flavours: all that there are.

    Returns the lines of all files.
    Raises GateError if a file or a line cannot be used; it names file and line.
    """
    files: Dict[str, _File] = {}
    for name in names:
        for file in _find(folder, name):
            files.setdefault(os.path.realpath(file.path), file)
    lines = [line for file in files.values() for line in _parse(file)]
    for line in lines:
        _check(line, declared, flavours)
    _refuse_twice(lines)
    return Expectations(lines, dict.fromkeys(names))


def witnesses(folder: Path, fix_names: Iterable[str]) -> Dict[str, Tuple[Line, ...]]:
    """Return fix -> its witnesses: the lines of FIX-absent-fails.txt in folder.

    Whether there are such cases is not looked at here; load() does that.
    Raises GateError if a fix has no such file, or a file cannot be used.
    """
    found = {}
    for fix in fix_names:
        shown = f"{fix}-absent-{FAILS}.txt"
        path = folder / shown
        lines = (tuple(_parse(_File(path, shown, f"{fix}-absent", FAILS)))
                 if path.is_file() else ())
        if not lines:
            raise GateError(UNUSABLE, f"fix {fix} has no witness in {path}",
                            "add a line for each case that fails without the fix")
        found[fix] = lines
    return found


def last_witness(expectations: Expectations, fix_lines: Mapping[str, Sequence[Line]],
                 flavours: Collection[str], suites: Collection[str]) -> None:
    """See to it that skips and flakes leave each fix a witness in the run.

    A fix without a witness in these suites and flavours has none to lose: that
    is for the verdict to say.

    fix_lines: fix -> its witnesses.  flavours, suites: those that run.

    Raises GateError if a fix has witnesses in the run, and for none of them,
    in none of the flavours, it would count whether it fails.
    """
    for fix, witness_lines in fix_lines.items():
        counting = [expectations.of(line.case, flavour)
                    for line in witness_lines for flavour in flavours
                    if _runs(line, flavour, suites)]
        taken = [line for line in counting if line is not None and line.kind != FAILS]
        if taken and len(taken) == len(counting):
            where = ", ".join(dict.fromkeys(f"{line.where} ({line.case})" for line in taken))
            raise GateError(UNUSABLE, f"no witness of fix {fix} is left in "
                            f"{', '.join(flavours)}: {where}",
                            "choose a flavour in which one runs, or remove the line")


def _runs(witness: Line, flavour: str, suites: Collection[str]) -> bool:
    suite = witness.case.partition(".")[0]
    return (suite in suites and witness.flavour in ("", flavour)
            and flavour in flavours_of(suite))


def _shown(text: str) -> str:
    """Return what somebody wrote as one can show it in a line."""
    text = printable(text)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _find(folder: Path, name: str) -> List[_File]:
    """Return the files of a NAME, or the one file that a path names."""
    known = f"those known are {', '.join(shipped(folder)) or 'none'}"
    if "/" in name or name.endswith(".txt"):
        match = _FILE.fullmatch(os.path.basename(name))
        if not match:
            raise GateError(UNUSABLE, f"{_shown(name)} is neither an expectation nor the file "
                            f"of one", f"{known}; a file is called {_FILES}")
        if not os.path.isfile(name):
            raise GateError(UNUSABLE, f"{_shown(name)} is no regular file",
                            f"give the path of a file called {_FILES}")
        return [_File(Path(name), _shown(name), match.group(1), match.group(2))]
    if not _NAME.fullmatch(name):
        raise GateError(UNUSABLE, f"\"{_shown(name)}\" cannot be an expectation's name", known)
    files = [_File(folder / f"{name}-{kind}.txt", f"{name}-{kind}.txt", name, kind)
             for kind in KINDS if os.path.isfile(folder / f"{name}-{kind}.txt")]
    if not files:
        raise GateError(UNUSABLE, f"there is no expectation {name}", known)
    return files


def shipped(folder: Path) -> List[str]:
    """Return the names of the expectations in folder."""
    matches = [_FILE.fullmatch(path.name) for path in folder.glob("*.txt")]
    return sorted({match.group(1) for match in matches if match})


def _read(file: _File) -> str:
    try:
        with open(file.path, "rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        raise GateError(UNUSABLE, f"{file.shown}: cannot be read: {error.strerror}",
                        "make it readable, or do not name it") from error
    if len(data) > _MOST_BYTES:
        raise GateError(UNUSABLE, f"{file.shown}: is larger than {_MOST_BYTES} bytes",
                        "remove what is no expectation")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise GateError(UNUSABLE, f"{file.shown}:{number}: is not UTF-8",
                        "save the file as UTF-8") from error


def _parse(file: _File) -> List[Line]:
    """Return the lines of a file, each with a complete comment above it."""
    lines: List[Line] = []
    block: List[str] = []	# the comment that serves the lines below it
    closed = False		# by such a line
    for number, raw in enumerate(_read(file).split("\n"), 1):
        text = raw.strip()
        if text.startswith("#"):
            block = [*([] if closed else block), text.lstrip("#").strip()]
            closed = False
        elif not text:
            block, closed = [], False
        else:
            lines.append(_line(file, number, text, block))
            closed = True
    return lines


def _line(file: _File, number: int, text: str, block: Sequence[str]) -> Line:
    where = f"{file.shown}:{number}"
    match = _LINE.fullmatch(text)
    if not match:
        raise GateError(UNUSABLE, f"{where}: \"{_shown(text)}\" is no suite.case[,flavour]",
                        "write one case on a line, and comments on lines of their own")
    absent = _absent(file.kind, block)
    if absent:
        raise GateError(UNUSABLE, f"{where}: {match.group(1)} has no {', no '.join(absent)}",
                        "add it to the comment directly above the line")
    return Line(match.group(1), match.group(2) or "", file.kind, where, file.name)


def _absent(kind: str, block: Sequence[str]) -> List[str]:
    """Return what the comment above a line of a kind lacks."""
    fields = set()
    reason = False
    for text in block:
        key, colon, value = text.partition(":")
        key = " ".join(key.lower().split())
        if colon and key in _FIELDS:
            if value.strip():
                fields.add(_FIELDS[key])
        elif not (colon and key in _NO_REASON):
            reason = reason or any(char.isalnum() for char in text)
    return ([] if reason else ["reason"]) + [each for each in _WANTED[kind] if each not in fields]


def _check(line: Line, declared: Mapping[str, Collection[str]],
           flavours: Collection[str]) -> None:
    """Raise GateError unless there are the case and the flavour of a line."""
    suite, _, case = line.case.partition(".")
    if suite not in declared:
        raise GateError(UNUSABLE, f"{line.where}: there is no suite {suite}",
                        f"remove the line; the suites are {', '.join(sorted(declared))}")
    if case not in declared[suite]:
        raise GateError(UNUSABLE, f"{line.where}: suite {suite} declares no case {case}",
                        "remove the line")
    if line.flavour and line.flavour not in flavours:
        raise GateError(UNUSABLE, f"{line.where}: there is no flavour {line.flavour}",
                        f"the flavours are {', '.join(flavours)}")


def _refuse_twice(lines: Iterable[Line]) -> None:
    """Raise GateError if two lines say something of the same case in the same flavour."""
    earlier: Dict[str, List[Line]] = {}
    for line in lines:
        for other in earlier.setdefault(line.case, []):
            if _same(line, other):
                raise GateError(UNUSABLE, f"{line.where}: {line.case} is listed twice, "
                                f"first in {other.where}", "remove one of the two lines")
        earlier[line.case].append(line)


def _same(one: Line, two: Line) -> bool:
    """Return whether two lines for a case are one too many.

    A skip may stand beside the others, and wins.  A fail and a flake may if
    only one of them names a flavour: it is the exception to the other.
    """
    if one.kind == two.kind:
        return one.flavour == two.flavour or not (one.flavour and two.flavour)
    return SKIPS not in (one.kind, two.kind) and one.flavour == two.flavour
