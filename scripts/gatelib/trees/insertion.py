# SPDX-License-Identifier: GPL-2.0
"""The tests as files and lines that are put into a kernel tree.

Lines find their place by syntax, and all bytes that are not ours stay as they are.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Set

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.insertions import (COPIES, COPIES_NOT_BELOW, COPIES_NOT_NAMED, COPIES_PROOF,
                                     INSERTIONS, KCONFIG_DIR, ConfigEntry, Insertion,
                                     KernelObject, SelftestWord, SourceEnd)
from gatelib.trees.files import Blob, Files, Lookup, read_blob

_BY_HAND = "add the tests to the tree by hand and use --tests tree, or choose another tree"
_WHOLE = "check out the whole project"

# What ends an entry of a Kconfig.
_STATEMENT = re.compile(rb"(config|menuconfig|choice|endchoice|menu|endmenu|if|endif|source"
                        rb"|comment|mainmenu)\b")
_ASSIGNMENT = re.compile(rb"(?:(?:export|override)[ \t]+)*([^ \t:+?=]+)[ \t]*(?:[+?]|:{0,3})=(.*)")
# Literals of C, which are kept, and comments, which are not.
_COMMENT = re.compile(rb"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|/\*.*?\*/|//[^\n]*""", re.S)


class _Place(NamedTuple):
    line: int		# number of the line by which the place was found
    at: int		# index of the line before which new ones go


class _Edit(NamedTuple):
    """A row of the table as it is for one file."""
    what: str		# what it adds, for messages
    there: bool
    sought: str		# by what its place is found, for messages
    places: List[_Place]
    text: bytes
    apart: bool = False	# with blank lines around it


class _Statement(NamedTuple):
    """A line of a Makefile with those that continue it."""
    place: _Place	# behind it
    text: bytes		# without its comment
    variable: bytes	# to which words are assigned, empty if it assigns none
    words: List[bytes]


def copies(root: Path) -> Dict[str, Path]:
    """Return name in the kernel tree -> the project's file that goes there.

    root: the project.  Raises GateError(UNUSABLE) if a row of the table finds no file.
    """
    found: Dict[str, Path] = {}
    for row in COPIES:
        mine = {}
        for path in sorted((root / row.folder).glob(row.glob)):
            name = path.relative_to(root / row.folder).as_posix()
            other = (f"{row.folder}/{name}".startswith(COPIES_NOT_BELOW)
                     or path.name in COPIES_NOT_NAMED or "/." in f"/{name}")
            if path.is_file() and not other:
                mine[f"{row.place}/{name}"] = path
        if not mine:
            raise GateError(UNUSABLE, f"{root} has no test {row.folder}/{row.glob}", _WHOLE)
        found.update(mine)
    return found


def touched(root: Path) -> Set[str]:
    """Return the names of all files that add() may write.

    root: the project.  Raises GateError(UNUSABLE) if it is not complete.
    """
    return {*copies(root), *(row.file for row in INSERTIONS)}


def present(lookup: Lookup, root: Path) -> bool:
    """Return whether a tree has any of the tests' programs already, ours or others.

    lookup: gives the tree's files.  root: the project.
    Raises GateError(UNUSABLE) if the project is not complete.
    """
    return any(lookup(name) is not None for name in copies(root) if name.endswith(COPIES_PROOF))


def add(files: Files, lookup: Lookup, root: Path) -> Files:
    """Return files with our tests in them, and with all of touched().

    files: what is changed in the tree already, which counts before lookup.
    lookup: gives the tree's files.  root: the project.
    Raises GateError(UNUSABLE) if a line's place is not in the tree or is there
    more than once, or if the project is not complete.
    """
    changed = _with_touched(files, lookup, root)
    for row in INSERTIONS:
        blob = changed[row.file]
        if blob is None:
            raise GateError(UNUSABLE, f"{row.file} is missing in the tree", _BY_HAND)
        lines = _lines(blob.data)
        edit = _edit(row, lines, root)
        if not edit.there:
            changed[row.file] = Blob(_insert(row.file, lines, edit), blob.executable)
    for name, path in copies(root).items():
        changed[name] = _project_blob(path)
    return changed


def keep(files: Files, lookup: Lookup, root: Path) -> Files:
    """Return files with all of touched() as the tree has them.

    Parameters as of add().
    Raises GateError(UNUSABLE), naming the first one, if a source or a line is missing.
    """
    same = _with_touched(files, lookup, root)
    missing = [name for name in copies(root) if same[name] is None]
    for row in INSERTIONS:
        blob = same[row.file]
        edit = _edit(row, _lines(blob.data if blob else b""), root)
        if not edit.there:
            missing.append(f"{edit.what} in {row.file}")
    if missing:
        what = f"the tests in the tree are not complete: no {missing[0]}"
        raise GateError(UNUSABLE, what, "use --tests ours")
    return same


def _with_touched(files: Files, lookup: Lookup, root: Path) -> Files:
    """Return a copy of files that has every file of touched()."""
    return {**{name: lookup(name) for name in sorted(touched(root) - set(files))}, **files}


def _project_blob(path: Path) -> Blob:
    blob = read_blob(path)
    if blob is None:
        raise GateError(UNUSABLE, f"{path} is missing", _WHOLE)
    return blob


def _lines(data: bytes) -> List[bytes]:
    # Unlike splitlines(), this takes a carriage return alone for no end.
    return io.BytesIO(data).readlines()


def _insert(name: str, lines: List[bytes], edit: _Edit) -> bytes:
    """Return the file's content with the edit's text at its place.

    Raises GateError(UNUSABLE) if there is no place or more than one.
    """
    if len(edit.places) != 1:
        numbers = " and ".join(str(place.line) for place in edit.places)
        what = f'"{edit.sought}" on lines {numbers}' if numbers else f'no "{edit.sought}"'
        raise GateError(UNUSABLE, f"no place for the tests: {name} has {what}", _BY_HAND)
    at = edit.places[0].at
    before, after = lines[:at], lines[at:]
    end = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    new = [line.rstrip(b"\n") + end for line in _lines(edit.text)]
    if before:
        if not before[-1].endswith(b"\n"):
            before[-1] += end
        if (edit.apart and before[-1].strip()) or _continued(before[-1]):
            new.insert(0, end)
    if edit.apart and after and after[0].strip():
        new.append(end)
    return b"".join([*before, *new, *after])


def _edit(row: Insertion, lines: List[bytes], root: Path) -> _Edit:
    """Return what the row is for the file of these lines."""
    if isinstance(row, ConfigEntry):
        text = _project_blob(root / KCONFIG_DIR / row.symbol).data
        return _Edit(f"config {row.symbol}", bool(_entries(lines, row.symbol)),
                     f"config {row.behind}", _entries(lines, row.behind), text, apart=True)
    if isinstance(row, KernelObject):
        text = f"obj-$(CONFIG_{row.symbol}) += {row.object}\n".encode()
        return _Edit(row.object, bool(_adding(lines, row.object)), f"obj-... += {row.behind}",
                     _adding(lines, row.behind), text)
    if isinstance(row, SourceEnd):
        line = f'#include "{row.include}"'
        pattern = rb'^[ \t]*#[ \t]*include[ \t]*"%s"' % re.escape(row.include.encode())
        code = _COMMENT.sub(lambda found: found.group(1) or b" ", b"".join(lines))
        text = f"#ifdef CONFIG_{row.symbol}\n{line}\n#endif\n".encode()
        return _Edit(line, re.search(pattern, code, re.M) is not None, "end",
                     [_Place(len(lines), len(lines))], text, apart=True)
    return _selftest_word(row, lines)


def _entries(lines: List[bytes], symbol: str) -> List[_Place]:
    """Return the ends of the symbol's entries in a Kconfig."""
    head = re.compile(rb"(menu)?config[ \t]+%s[ \t]*(#.*)?$" % re.escape(symbol.encode()))
    found = []
    for start, line in enumerate(lines):
        if head.match(line.rstrip(b"\r\n")):
            end = start + 1
            while end < len(lines) and not _STATEMENT.match(lines[end]):
                end += 1
            # What leads to the next one is the next one's.
            while end - 1 > start and (not lines[end - 1].strip() or lines[end - 1][:1] == b"#"):
                end -= 1
            found.append(_Place(start + 1, end))
    return found


def _adding(lines: List[bytes], name: str) -> List[_Place]:
    """Return the ends of a kernel Makefile's statements that add the object."""
    return [each.place for each in _statements(lines)
            if each.variable.startswith(b"obj-") and name.encode() in each.words]


def _selftest_word(row: SelftestWord, lines: List[bytes]) -> _Edit:
    include = re.compile(rb"include[ \t]+(\S*/)?%s$" % re.escape(row.before.encode()))
    variables = {name.encode() for name in (row.variable, *row.also)}
    there = False
    places: List[_Place] = []
    for each in _statements(lines):
        if include.match(each.text):
            at = each.place.line - 1
            while at and not lines[at - 1].strip():
                at -= 1
            places.append(_Place(each.place.line, at))
        elif not places and each.variable in variables and row.word.encode() in each.words:
            there = True
    return _Edit(f"{row.variable} += {row.word}", there, f"include .../{row.before}", places,
                 f"{row.variable} += {row.word}\n".encode())


def _statements(lines: List[bytes]) -> List[_Statement]:
    """Return what a Makefile's lines are when those that are continued are joined."""
    found = []
    first = 0
    for after, line in enumerate(lines, 1):
        if _continued(line) and after < len(lines):
            continue
        joined = b" ".join(each.rstrip(b"\r\n").rstrip(b"\\") for each in lines[first:after])
        text = joined.partition(b"#")[0].strip()
        match = _ASSIGNMENT.match(text)
        variable, value = match.groups() if match else (b"", b"")
        found.append(_Statement(_Place(first + 1, after), text, variable, value.split()))
        first = after
    return found


def _continued(line: bytes) -> bool:
    body = line.rstrip(b"\r\n")
    return (len(body) - len(body.rstrip(b"\\"))) % 2 == 1
