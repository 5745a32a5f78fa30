# SPDX-License-Identifier: GPL-2.0
"""Cover letters: their text is the project's, their lists and numbers are git's."""

from __future__ import annotations

import re
from typing import Tuple

from gatelib.base.errors import UNUSABLE, GateError
from serieslib.base.patchfile import Mail, parse

PLACEHOLDERS = ("*** SUBJECT HERE ***", "*** BLURB HERE ***")
_NUMBER = re.compile(r"\[PATCH[^]]*\]")
# One author's list, and all of them with the diffstat below.
_LIST = re.compile(r"^\S.* \((?P<patches>\d+)\):\n(?:  .+\n)+\n", re.M)
_LISTS = re.compile(r"(?:^\S.* \(\d+\):\n(?:  .+\n)+\n)+(?= \S.* \| )", re.M)


def _split(letter: Mail) -> Tuple[str, str]:
    """Return the text that somebody wrote, and git's shortlog and diffstat below it."""
    whole = letter.body + letter.stat
    found = list(_LISTS.finditer(whole))
    if not found:
        return whole, ""
    lists = list(_LIST.finditer(whole, found[-1].start(), found[-1].end()))
    at = lists[0].start()
    # What looks like a list and is the text's end does not count to the number of patches.
    total = re.search(r"\[PATCH[^]]* 0+/(\d+)\]", letter.head)
    for number, each in enumerate(lists):
        if total and sum(int(one["patches"]) for one in lists[number:]) == int(total.group(1)):
            at = each.start()
    return whole[:at], whole[at:]


def renew(old: str, fresh: str) -> str:
    """Return the letter old with the numbers, shortlog and diffstat of fresh.

    fresh: the letter that git format-patch --cover-letter wrote for the same series.
    Raises GateError if there is text below the diffstat, which would be lost.
    """
    ours, theirs = parse(old), parse(fresh)
    for line in _split(ours)[1].split("\n"):
        if line and not line.startswith(" ") and not re.search(r" \(\d+\):$", line):
            raise GateError(UNUSABLE, f"the cover letter has text below its lists: {line[:40]}",
                            "move it above the list of patches")
    number = _NUMBER.search(theirs.head)
    head = ours.head
    if number:
        head = _NUMBER.sub(number.group(0), head, count=1)
    return head + _split(ours)[0] + _split(theirs)[1]


def text_of(letter: str) -> str:
    """Return the text that somebody wrote, without the lists below it."""
    return _split(parse(letter))[0].strip("\n")


def subject_of(letter: str) -> str:
    """Return the letter's subject without the [PATCH ...]."""
    return parse(letter).subject()


def fill(fresh: str, subject: str, text: str) -> str:
    """Return the letter fresh with subject and text in the places git leaves for them."""
    head, gap, rest = fresh.partition("\n\n")
    # The subject may be folded in git's own way only where git wrote it.
    return (head.replace(PLACEHOLDERS[0], subject, 1) + gap
            + rest.replace(PLACEHOLDERS[1], text, 1))
