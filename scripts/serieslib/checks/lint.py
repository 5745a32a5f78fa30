# SPDX-License-Identifier: GPL-2.0
"""What one patch file has to look like, found out by reading it."""

from __future__ import annotations

import email.header
import email.utils
import re
from typing import Callable, Dict, List

from serieslib.base.patchfile import Mail, read, split
from serieslib.base.report import Finding
from serieslib.base.tables import (LINE_MAX, NAME_END, PREFIXES, PREFIX_IGNORES, SUBJECT_MAX,
                                   TAG_ORDER)

_AGAIN = "mend the commit and take it with series import"
# What mailers make of "=", of spaces at a line's end and of bytes above 127.
_QUOTED = re.compile(r"=3D|=20$|(=[0-9A-F]{2}){2}")
_FIXES = re.compile(r'[0-9a-f]{12,40} \(".+"\)')


def _form(mail: Mail, text: str) -> List[Finding]:
    """A mail that git can take: plain text in UTF-8, with a diff."""
    found = plain(mail, text)
    if not found and not mail.sections:
        found.append(Finding("there is no diff in it", _AGAIN))
    return found


def plain(mail: Mail, text: str) -> List[Finding]:
    """Plain text in UTF-8, as git am and an mbox can have it."""
    found = []
    coding = mail.header("Content-Transfer-Encoding").lower()
    if coding in ("quoted-printable", "base64"):
        return [Finding(f"the mail is encoded as {coding}",
                        "save the patch as plain text, as git format-patch writes it")]
    lines = split(text)
    for number, line in enumerate(lines, 1):
        if line.rstrip("\n").endswith("\r"):
            return [Finding(f"line {number} ends in CR LF", "save the file with plain line feeds")]
    if not all(0xdc80 > ord(char) or ord(char) > 0xdcff for char in text):
        found.append(Finding("there are bytes which are no UTF-8", "save the file as UTF-8"))
    for number, line in enumerate(split(mail.body), len(split(mail.head)) + 1):
        if line.startswith("From "):
            found.append(Finding(f"line {number} begins with \"From \", which begins a mail in an "
                                 "mbox", "write the sentence in another way"))
    return found


def mangled(mail: Mail, text: str) -> List[Finding]:
    """Text that a mailer encoded, without a header that says so."""
    for number, line in enumerate(split(text), 1):
        if _QUOTED.search(line.rstrip("\n")):
            return [Finding(f"line {number} looks quoted-printable: {line.strip()[:40]}",
                            "save the patch as plain text, as git format-patch writes it")]
    return []


def _spaces(mail: Mail, text: str) -> List[Finding]:
    found = []
    for number, line in enumerate(split(mail.head + mail.body), 1):
        if re.search(r"[ \t]+$", line.rstrip("\n")):
            found.append(Finding(f"line {number} of the message ends in a space", _AGAIN))
    for section in mail.sections:
        for hunk in section.hunks:
            for line in hunk.lines:
                if re.match(r"\+.*[ \t]$", line):
                    found.append(Finding(f"a line that is added to {section.name} ends in a space: "
                                         f"{line.strip()[:40]}",
                                         "remove the space and import or refresh"))
    return found


def _deciding(mail: Mail) -> List[str]:
    names = [section.name for section in mail.sections]
    chosen = [name for name in names
              if not any(re.fullmatch(ignore, name) or (ignore.endswith("/")
                                                        and name.startswith(ignore))
                         for ignore in PREFIX_IGNORES)]
    return chosen or names


def _subject(mail: Mail, text: str) -> List[Finding]:
    subject = mail.subject()
    allowed: Dict[str, None] = {}
    for name in _deciding(mail):
        for row in PREFIXES:
            if re.match(row.path, name):
                allowed[row.prefix] = None
                break
        else:
            return [Finding(f"no prefix is known for {name}", "add a row to the table PREFIXES")]
    found = []
    prefix = next((each for each in allowed if subject.startswith(each)), None)
    if prefix is None:
        found.append(Finding(f"subject \"{subject}\" has to begin with \"{' or '.join(allowed)}\"",
                             _AGAIN))
    elif not re.match(r"[A-Z]", subject[len(prefix):]):
        found.append(Finding(f"subject \"{subject}\" has no capital after \"{prefix}\"", _AGAIN))
    if len(subject) > SUBJECT_MAX:
        found.append(Finding(f"the subject has {len(subject)} characters, more than {SUBJECT_MAX}",
                             _AGAIN))
    if subject.endswith("."):
        found.append(Finding("the subject ends in a full stop", _AGAIN))
    return found


def _lines(mail: Mail, text: str) -> List[Finding]:
    found = []
    for line in mail.message():
        # Quotations, output and addresses stay as they are.
        if len(line) > LINE_MAX and not re.match(r"(>|\s{4}|\t)", line) and "://" not in line:
            found.append(Finding(f"a line of the message has {len(line)} characters, more than "
                                 f"{LINE_MAX}: {line[:30]}", _AGAIN))
    if not any(line.strip() for line in mail.message()):
        found.append(Finding("there is no message under the subject", _AGAIN))
    return found


def _tags(mail: Mail, text: str) -> List[Finding]:
    tags = mail.tags()
    found = []
    name, author = email.utils.parseaddr(str(email.header.make_header(
        email.header.decode_header(mail.header("From")))))
    if len(name) >= NAME_END:
        found.append(Finding(f"the author's name has {len(name)} characters, and git am takes the "
                             f"address for a name of {NAME_END} or more", "shorten the name"))
    if ("Signed-off-by", f"{name} <{author}>") not in tags:
        found.append(Finding(f"there is no Signed-off-by of the author {name} <{author}>", _AGAIN))
    ranks = {tag: rank for rank, row in enumerate(TAG_ORDER) for tag in row}
    highest, before = -1, ""
    for tag, value in tags:
        if tag not in ranks:
            found.append(Finding(f"tag {tag}: is not known", "write it right, or add it to the "
                                 "table TAG_ORDER"))
        elif ranks[tag] < highest:
            found.append(Finding(f"{tag}: comes after {before}:", "the order is " + ", ".join(
                "/".join(row) for row in TAG_ORDER)))
        else:
            highest, before = ranks[tag], tag
        if tag.endswith("-by") and not re.fullmatch(r"\S.* <[^<>@\s]+@[^<>@\s]+>", value):
            found.append(Finding(f"{tag}: {value} is no \"Name <mail>\"", _AGAIN))
        if tags.count((tag, value)) > 1:
            found.append(Finding(f"{tag}: {value} is there twice", _AGAIN))
        if tag == "Fixes" and not _FIXES.fullmatch(value):
            found.append(Finding(f"Fixes: {value} is not of the form 123456789abc (\"subject\")",
                                 _AGAIN))
        if tag in ("Link", "Closes") and not value.startswith("https://"):
            found.append(Finding(f"{tag}: {value} is no address", _AGAIN))
    message = mail.message()
    for line in message:
        if line.partition(":")[0] in ranks and ": " in line:
            found.append(Finding(f"{line[:40]} stands above an empty line or text, where nobody "
                                 "takes it for a tag", "move it to the other tags"))
    if tags and message and message[-1].strip():
        found.append(Finding("there is no empty line before the tags", _AGAIN))
    return found


CHECKS: Dict[str, Callable[[Mail, str], List[Finding]]] = {
    "plain text": _form, "not mangled": mangled, "no trailing space": _spaces,
    "subject": _subject, "line length": _lines, "tags": _tags,
}


def lint(data: bytes) -> Dict[str, List[Finding]]:
    """Return check -> what it found for a patch file.

    A file that is no plain text is not verdicts any further.
    """
    mail = read(data)
    text = data.decode("utf-8", "surrogateescape")
    results: Dict[str, List[Finding]] = {}
    for name, check in CHECKS.items():
        results[name] = check(mail, text)
        if results[name] and name in ("plain text", "not mangled"):
            break
    return results


def numbering(files: Dict[str, bytes]) -> Dict[str, List[Finding]]:
    """Return file name -> findings about [PATCH i/n] and the file's own number."""
    results: Dict[str, List[Finding]] = {}
    for number, (name, data) in enumerate(files.items(), 1):
        subject = read(data).header("Subject")
        found = re.match(r"\[PATCH (\d+)/(\d+)\]", subject)
        right = (found is not None and (int(found.group(1)), int(found.group(2)))
                 == (number, len(files)) and name.startswith(f"{number:04}-"))
        results[name] = [] if right else [Finding(
            f"it is patch {number} of {len(files)} and says otherwise",
            "take the set from a git branch with series import")]
    return results
