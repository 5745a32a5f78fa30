# SPDX-License-Identifier: GPL-2.0
"""Turns a series in a git repository into mails, ready to be sent as they are.

git format-patch writes them.  What it does not do, or not well, is done to
their headers afterwards: b4 0.12 crashes on a From: that git folded, so no
header but lists of addressees has more than one line; and Message-IDs are
made from what the mails say, so that the same series always has the same.
"""

from __future__ import annotations

import email.utils
import hashlib
import os
import re
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from gatelib.base.errors import UNUSABLE, GateError
from serieslib.base.git import Git
from serieslib.base.patchfile import read
from serieslib.base.tables import COVER
from serieslib.mails import address
from serieslib.mails.address import People
from serieslib.mails.series import Series
from serieslib.sets import cover, folders

MBOX = "series.mbox"
# The same without the cover letter, at which git am stops unless it is told not to.
AM_MBOX = "git-am.mbox"
_MIME = ["MIME-Version: 1.0", "Content-Type: text/plain; charset=UTF-8",
         "Content-Transfer-Encoding: 8bit"]


class Letter(NamedTuple):
    """What the mails say besides the patches."""
    sender: str			# "Name <mail>"
    version: int
    people: People
    base: Optional[str]		# commit, where others know it
    old: Optional[str]		# ref of the previous version in the repository


def author(patches: Sequence[Path]) -> str:
    """Return the author of the first patch as "Name <mail>"."""
    return email.utils.formataddr(email.utils.parseaddr(
        read(patches[0].read_bytes()).header("From")))


def write(series: Series, git: Git, base: str, letter: Letter,
          cover_letter: str) -> Dict[str, bytes]:
    """Return file name -> mail of the series base..HEAD in git.

    cover_letter: the set's own, whose text is sent.
    """
    name, mail = address.parse(letter.sender, "--sender")
    last = max((_date(path) for path in series.patches),
               key=lambda date: email.utils.parsedate_to_datetime(date).timestamp())
    ident = {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail, "GIT_COMMITTER_DATE": last}
    options = ["--cover-letter", "--from", "--signoff"]
    if letter.version > 1:
        options.append(f"-v{letter.version}")
    if letter.old:
        options.append(f"--range-diff={base}..{letter.old}")
    fresh = Git(git.folder, dict(git.env, **ident)).format(base, *options)
    head = next(each for each in fresh if each.endswith(COVER))
    texts = {each: data.decode("utf-8", "surrogateescape") for each, data in fresh.items()}
    texts[head] = _cover(series, texts[head], cover_letter, letter)
    return _threaded(texts, letter, last)


def _date(patch: Path) -> str:
    date = read(patch.read_bytes()).header("Date")
    try:
        email.utils.parsedate_to_datetime(date)
    except (TypeError, ValueError):
        raise GateError(UNUSABLE, f"{patch.parent.name}/{patch.name} has no usable Date",
                        "take the set from a git branch with series import") from None
    return date


def _cover(series: Series, fresh: str, cover_letter: str, letter: Letter) -> str:
    text = cover.text_of(cover_letter)
    if series.left_out:
        subjects = "".join(f"\n  {read(path.read_bytes()).subject()}" for path in series.left_out)
        text += (f"\n\nLinux {series.tree.version.full} has these already, so they are left out:\n"
                 + subjects)
    filled = cover.fill(fresh, cover.subject_of(cover_letter), text)
    if letter.base:
        filled = filled.rstrip("\n") + f"\n\nbase-commit: {letter.base}\n"
    return filled


def _threaded(texts: Mapping[str, str], letter: Letter, date: str) -> Dict[str, bytes]:
    day = email.utils.parsedate_to_datetime(date).strftime("%Y%m%d")
    people = f"{letter.sender}\n{letter.people.to}\n{letter.people.cc}\n"
    everything = hashlib.sha256((people + "".join(texts.values())).encode("utf-8", "replace"))
    first = read(next(iter(texts.values())).encode("utf-8", "surrogateescape"))
    slug = "-".join(re.findall(r"[a-z0-9]+", first.subject().lower())[:5]) or "series"
    domain = email.utils.parseaddr(letter.sender)[1].rpartition("@")[2]
    mails: Dict[str, bytes] = {}
    top = ""
    for number, (name, text) in enumerate(texts.items()):
        ident = f"<{day}-{slug}-v{letter.version}-{number}-{everything.hexdigest()[:12]}@{domain}>"
        top = top or ident
        more = [f"Message-ID: {ident}"]
        if ident != top:
            more += [f"In-Reply-To: {top}", f"References: {top}"]
        mails[name] = _headed(text, letter.people, more).encode("utf-8", "surrogateescape")
    return mails


def _headed(text: str, people: People, more: List[str]) -> str:
    """Return the mail with its headers unfolded, addressees and further headers added."""
    head, gap, rest = text.partition("\n\n")
    lines = [_plain(line) for line in re.sub(r"\n[ \t]+", " ", head).split("\n")]
    if not rest.isascii() and not re.search(r"^Content-Type:", head, re.M):
        lines += _MIME
    # Up to the subject as git has it, then ours, then what git says about the encoding.
    at = 1 + next(index for index, line in enumerate(lines) if line.startswith("Subject:"))
    for title, persons in (("To", people.to), ("Cc", people.cc)):
        if persons:
            more = more + [f"{title}: " + ",\n\t".join(address.header(each) for each in persons)]
    return "\n".join(lines[:at] + more + lines[at:]) + gap + rest


def _plain(line: str) -> str:
    """Return the header line in ASCII; git leaves a cover letter's as they are."""
    title, colon, value = line.partition(": ")
    if line.isascii() or not colon:
        return line
    if title == "From":
        return f"From: {address.header(value)}"
    return f"{title}: {address.encoded(value)}"


def mbox(mails: Mapping[str, bytes]) -> bytes:
    """Return all mails as one mbox."""
    return b"\n".join(mails.values())


def check_out(out: Path) -> None:
    """Raise GateError if mails cannot be saved in the folder out.

    That is also so if there are some in it: git send-email would be given
    old and new ones together.
    """
    there = next(path for path in (out, *out.parents) if os.path.lexists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise GateError(UNUSABLE, f"--out {out}: {there} is no folder that can be written to",
                        "give a new folder")
    if there == out and any(path for glob in ("*.patch", "*.mbox") for path in out.glob(glob)):
        raise GateError(UNUSABLE, f"--out {out} has mails in it", "give a new folder")


def save(mails: Mapping[str, bytes], out: Path) -> None:
    """Write the mails to the folder out: each, all of them, and those with a patch.

    Raises GateError as check_out() does.
    """
    check_out(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise GateError(UNUSABLE, f"cannot make --out {out}: {err.strerror}",
                        "give a new folder") from err
    for name, data in mails.items():
        (out / name).write_bytes(data)
    (out / MBOX).write_bytes(mbox(mails))
    (out / AM_MBOX).write_bytes(mbox({name: data for name, data in mails.items()
                                      if not name.endswith(COVER)}))


def previous(root: Path, series: Series, git: Git, base: str, version: int) -> Optional[str]:
    """Return a ref in git with the version before, None if patches/SET/vN is not there.

    The branch that is checked out stays what it was.
    """
    folder = root / "patches" / series.set / f"v{version - 1}"
    old = [path for path in sorted(folder.glob("[0-9]*.patch")) if path.name != COVER]
    left = {read(path.read_bytes()).subject() for path in series.left_out}
    old = [path for path in old if read(path.read_bytes()).subject() not in left]
    if not old:
        return None
    here = git.text("rev-parse", "HEAD")
    git.run("checkout", "-q", "--detach", base)
    wrong = git.am(old)
    there = git.text("rev-parse", "HEAD")
    git.run("checkout", "-q", "-B", "series", here)
    if wrong is not None:
        raise GateError(UNUSABLE, f"{folder} does not apply to {series.name}: {wrong}",
                        "rebase the older version, or remove it")
    return there


def cover_of(root: Path, series: Series) -> str:
    """Return the cover letter of the series's set; raise GateError if it has none."""
    data = folders.load(root, series.set).get(COVER)
    if data is None:
        raise GateError(UNUSABLE, f"set {series.set} has no {COVER}",
                        "take the set from a git branch with series import, then write it")
    return data.decode("utf-8", "surrogateescape")
