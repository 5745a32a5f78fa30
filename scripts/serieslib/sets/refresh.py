# SPDX-License-Identifier: GPL-2.0
"""Rewrites the patches that add files of kunit/ and selftests/.

No kernel tree is needed.  A patch tells everything about the lines that it
touches or shows, and the rest of a file matters to nobody: with a filler for
each line that is not known, a small repository is made on which the whole
set applies.  There git writes the new files, the diffstats and the cover
letter's lists anew; messages and what is wired into files of the tree stay
as they are to the byte.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.trees.files import Blob, write_blob
from serieslib.base.git import Git, scratch
from serieslib.base.patchfile import Mail, Section, read
from serieslib.base.tables import COVER
from serieslib.sets import cover, folders
from serieslib.sets.owned import added, blob, owned


class _Line:
    """A line of a file before the set; text is None while nobody has shown it."""

    def __init__(self, text: Optional[str] = None) -> None:
        self.text = text


def before(mails: List[Mail]) -> Dict[str, str]:
    """Return the files that a series changes as they were, as far as it tells.

    Lines that no patch shows are fillers, each of them unlike all others.
    """
    first: Dict[str, List[_Line]] = {}	# lines before the series
    now: Dict[str, List[_Line]] = {}
    for mail in mails:
        for section in mail.sections:
            if section.name not in now:
                now[section.name] = []
                if not section.new:
                    first[section.name] = []
            _replay(section, first.get(section.name), now[section.name])
    return {name: "".join(f"{_shown(line, number)}\n" for number, line in enumerate(lines))
            for name, lines in first.items()}


def _shown(line: _Line, number: int) -> str:
    return line.text if line.text is not None else f"line {number} that no patch shows"


def _replay(section: Section, first: Optional[List[_Line]], now: List[_Line]) -> None:
    """Do to now what the section does; lines that it takes for granted go to first, too."""
    # From the last hunk to the first: earlier line numbers then stay right.
    for hunk in reversed(section.hunks):
        old = [line for line in hunk.lines if line[:1] != "+" and line[:1] != "\\"]
        at = max(hunk.start - 1, 0)
        while first is not None and len(now) < at + len(old):
            now.append(_Line())
            first.append(now[-1])
        for line in hunk.lines:
            if line[:1] == "+":
                now.insert(at, _Line(line[1:]))
                at += 1
            elif line[:1] != "\\":
                now[at].text = line[1:]
                if line[:1] == "-":
                    del now[at]
                else:
                    at += 1


class Written(NamedTuple):
    """A set as it is written anew; file name -> content or lines each."""
    files: Dict[str, bytes]		# with the project's copies of the tests
    by_git: Dict[str, bytes]		# what git format-patch makes of it
    spaces: Dict[str, List[str]]	# what git has to say of white space


def refreshed(root: Path, name: str, env: Mapping[str, str], where: Path) -> Written:
    """Return the set with the project's copies of the tests in it.

    where: folder for the small repository.  Raises GateError if the set does
    not apply to itself, that is if a patch is damaged.
    """
    old = folders.load(root, name)
    places = owned(root)
    mails = {each: read(data) for each, data in folders.patches(old).items()}
    with scratch(env, where) as git:
        for path, text in before(list(mails.values())).items():
            write_blob_in(git.folder, path, Blob(text.encode("utf-8", "surrogateescape")))
        git.run("add", "-A", "-f")
        git.run("commit", "-q", "--allow-empty", "-m", "what the patches tell")
        base = git.text("rev-parse", "HEAD")
        spaces = {}
        for each, mail in mails.items():
            _commit(git, f"{name}/{each}", mail, places)
            said = git.attempt("show", "--format=", "--check", "HEAD").stdout
            spaces[each] = re.findall(r"^(\S+?):\d+: (.+)\.$", said.decode("utf-8", "replace"),
                                      re.M)
        options = ["--cover-letter"] if COVER in old else []
        fresh = git.format(base, *options)
    return Written(_merged(old, mails, fresh, places), fresh,
                   {each: [": ".join(words) for words in lines] for each, lines in spaces.items()})


def write_blob_in(folder: Path, name: str, content: Blob) -> None:
    """Write a file below folder, whose own folder may not be there yet."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    write_blob(folder / name, content)


def _commit(git: Git, label: str, mail: Mail, places: Mapping[str, Path]) -> None:
    """Commit the patch on top of the others, with the project's copies of new files."""
    with tempfile.TemporaryDirectory(dir=git.folder.parent) as temp:
        path = Path(temp) / "patch"
        path.write_bytes(mail.text().encode("utf-8", "surrogateescape"))
        wrong = git.am([path])
    if wrong is not None:
        raise GateError(UNUSABLE, f"{label} does not apply after those before it: {wrong}",
                        "take the set from a git branch again with series import")
    for section in mail.sections:
        if section.new and section.name in places:
            write_blob_in(git.folder, section.name, blob(places[section.name]))
    git.run("add", "-A", "-f")
    author = git.text("log", "-1", "--format=%an <%ae>"), git.text("log", "-1", "--format=%ad")
    git.run("commit", "-q", "--amend", "--no-edit", f"--author={author[0]}", f"--date={author[1]}")


def _merged(old: Mapping[str, bytes], mails: Mapping[str, Mail], fresh: Mapping[str, bytes],
            places: Mapping[str, Path]) -> Dict[str, bytes]:
    merged: Dict[str, bytes] = {}
    patches = [data for each, data in fresh.items() if each != COVER]
    for (each, mail), data in zip(mails.items(), patches):
        # Only new files can differ from what they were.
        changed = any(section.new and section.name in places
                      and added(section) != blob(places[section.name])
                      for section in mail.sections)
        merged[each] = _spliced(mail, read(data)) if changed else old[each]
    if COVER in old:
        letter = old[COVER].decode("utf-8", "surrogateescape")
        renewed = cover.renew(letter, fresh[COVER].decode("utf-8", "surrogateescape"))
        merged[COVER] = renewed.encode("utf-8", "surrogateescape")
    return dict(sorted(merged.items()))


def _spliced(mail: Mail, fresh: Mail) -> bytes:
    """Return the old mail with the new files and the diffstat of the fresh one."""
    new = {section.name: section for section in fresh.sections if section.new}
    sections = [new.get(section.name, section) if section.new else section
                for section in mail.sections]
    return mail._replace(stat=fresh.stat, sections=sections).text().encode(
        "utf-8", "surrogateescape")
