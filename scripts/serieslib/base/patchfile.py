# SPDX-License-Identifier: GPL-2.0
"""A mail of git format-patch, taken apart so that it can be put together again."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Tuple

_DIFF = re.compile(r"^diff --git a/(\S+) b/(\S+)$")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_TAG = re.compile(r"^([A-Z][a-z]+(?:-[a-z]+)*): (\S.*)$")


class Hunk(NamedTuple):
    """One hunk: where it begins before the change (counted from 1), and its lines.

    A line keeps its leading blank, plus or minus and has no line feed.
    """
    start: int
    lines: List[str]


class Section(NamedTuple):
    """What a patch does to one file."""
    name: str
    text: str		# as it stands in the mail
    new: bool		# the file is not there before
    hunks: List[Hunk]

    def counts(self) -> Tuple[int, int]:
        """Return how many lines are added and how many removed."""
        signs = [line[:1] for hunk in self.hunks for line in hunk.lines]
        return signs.count("+"), signs.count("-")


class Mail(NamedTuple):
    """A mail: all of its text is head + body + stat + sections + tail."""
    head: str		# header lines with the empty line after them
    body: str		# message, up to and with the line of three dashes
    stat: str		# what stands between that line and the diff
    sections: List[Section]
    tail: str		# a signature, if there is one

    def text(self) -> str:
        """Return the whole mail."""
        return (self.head + self.body + self.stat
                + "".join(section.text for section in self.sections) + self.tail)

    def header(self, name: str) -> str:
        """Return a header's value on one line, "" if there is none of this name."""
        found = re.search(rf"^{re.escape(name)}:[ \t]*(.*(?:\n[ \t].*)*)", self.head, re.M | re.I)
        return re.sub(r"\n[ \t]+", " ", found.group(1)).strip() if found else ""

    def subject(self) -> str:
        """Return the subject without the [PATCH ...] in front of it."""
        return re.sub(r"^\[[^]]*\]\s*", "", self.header("Subject"))

    def message(self) -> List[str]:
        """Return the lines of the message: no tags, no three dashes."""
        return self._split()[0]

    def tags(self) -> List[Tuple[str, str]]:
        """Return the tags at the end of the message, (name, value) each."""
        return self._split()[1]

    def _split(self) -> Tuple[List[str], List[Tuple[str, str]]]:
        lines = self.body.split("\n")
        while lines and lines[-1].strip() in ("", "---"):
            lines.pop()
        tags: List[Tuple[str, str]] = []
        while lines:
            found = _TAG.match(lines[-1])
            if not found:
                break
            tags.insert(0, (found.group(1), found.group(2)))
            lines.pop()
        return lines, tags

    def new_files(self) -> List[str]:
        """Return the names of the files that the patch adds."""
        return [section.name for section in self.sections if section.new]


def split(text: str) -> List[str]:
    """Return the lines with their line feeds; nothing but a line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def read(data: bytes) -> Mail:
    """Take apart a mail in a file; bytes that are no UTF-8 are kept as they are."""
    return parse(data.decode("utf-8", "surrogateescape"))


def parse(text: str) -> Mail:
    """Take a mail apart.  Text that is no patch ends up in head and body."""
    head, gap, rest = text.partition("\n\n")
    head += gap
    body, stat = rest, ""
    cut = re.search(r"^---\n", rest, re.M)
    if cut:
        body, stat = rest[:cut.end()], rest[cut.end():]
    begin = re.search(r"^diff --git ", stat, re.M)
    if not begin:
        return Mail(head, body, stat, [], "")
    stat, diff = stat[:begin.start()], stat[begin.start():]
    sections, tail = _sections(split(diff))
    return Mail(head, body, stat, sections, tail)


def _sections(lines: List[str]) -> Tuple[List[Section], str]:
    sections: List[Section] = []
    at = 0
    while at < len(lines) and _DIFF.match(lines[at].rstrip("\n")):
        begin = at
        found = _DIFF.match(lines[at].rstrip("\n"))
        assert found is not None
        at += 1
        new, hunks = False, []
        while at < len(lines) and not lines[at].startswith(("diff --git ", "-- \n")):
            new = new or lines[at].startswith("new file mode ")
            if _HUNK.match(lines[at]):
                at, hunk = _hunk(lines, at)
                hunks.append(hunk)
            elif re.match(r"(old|new|deleted|index|similarity|rename|copy|---|\+\+\+|Binary|GIT)",
                          lines[at]):
                at += 1
            else:
                break
        sections.append(Section(found.group(2), "".join(lines[begin:at]), new, hunks))
    return sections, "".join(lines[at:])


def _hunk(lines: List[str], at: int) -> Tuple[int, Hunk]:
    """Return the index after the hunk that begins at lines[at], and the hunk."""
    found = _HUNK.match(lines[at])
    assert found is not None
    before, after = (int(found.group(group) or "1") for group in (2, 4))
    taken: List[str] = []
    at += 1
    while at < len(lines) and (before > 0 or after > 0 or lines[at].startswith("\\")):
        sign = lines[at][:1]
        before -= sign in (" ", "-", "\n")
        after -= sign in (" ", "+", "\n")
        taken.append(lines[at].rstrip("\n"))
        at += 1
    return at, Hunk(int(found.group(1)), taken)
