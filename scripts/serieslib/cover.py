# SPDX-License-Identifier: GPL-2.0
"""Cover letters: their text is the project's, their lists and numbers are git's."""

from __future__ import annotations

import re
from typing import Tuple

from .patchfile import Mail, parse

PLACEHOLDERS = ("*** SUBJECT HERE ***", "*** BLURB HERE ***")
_SHORTLOG = re.compile(r"^\S.* \(\d+\):\n  \S", re.M)
_NUMBER = re.compile(r"\[PATCH[^]]*\]")


def _split(letter: Mail) -> Tuple[str, str]:
    """Return the text that somebody wrote, and git's shortlog and diffstat below it."""
    whole = letter.body + letter.stat
    lists = [found.start() for found in _SHORTLOG.finditer(whole)]
    # Several authors have a list each; the first one is preceded by the text's end.
    at = lists[0] if lists else len(whole)
    return whole[:at], whole[at:]


def renew(old: str, fresh: str) -> str:
    """Return the letter old with the numbers, shortlog and diffstat of fresh.

    fresh: the letter that git format-patch --cover-letter wrote for the same series.
    """
    ours, theirs = parse(old), parse(fresh)
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
