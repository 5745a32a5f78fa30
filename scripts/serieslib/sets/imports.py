# SPDX-License-Identifier: GPL-2.0
"""Takes changed patches back from a git branch."""

from __future__ import annotations

import fnmatch
import shutil
from pathlib import Path
from typing import Dict, List, Mapping, Optional

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.trees import FIXES
from serieslib.base.git import Git, isolated, scratch
from serieslib.base.patchfile import read
from serieslib.base.tables import BASE_TAG, COVER
from serieslib.sets import cover, folders


def taken(root: Path, name: str, repo: Path, base: Optional[str], env: Mapping[str, str],
          where: Path) -> Dict[str, bytes]:
    """Return the files that the set has to have to be the branch at repo's HEAD.

    base: the commit before the first patch; default the tag "base".
    where: folder for a temporary repository, in which nothing of the
    user's git configuration or attributes can change the output.
    Raises GateError if the branch cannot be a series.
    """
    theirs = Git(repo, isolated(dict(env, GIT_OPTIONAL_LOCKS="0")))
    tip = _commit(theirs, "HEAD", "give a git repository with --git")
    start = _commit(theirs, base or BASE_TAG,
                    "give the commit before the first patch with --base")
    _check_line(theirs, start, tip)
    with scratch(env, where) as git:
        git.borrow(Path(theirs.text("rev-parse", "--path-format=absolute", "--git-path",
                                    "objects")))
        shallow = Path(theirs.text("rev-parse", "--path-format=absolute", "--git-path", "shallow"))
        if shallow.is_file():
            shutil.copy(shallow, git.folder / ".git" / "shallow")
        fresh = git.format(start, "--cover-letter", tip=tip)
    files = folders.patches(fresh)
    for each, data in files.items():
        if not read(data).sections:
            raise GateError(UNUSABLE, f"{each} has no diff: the commit is empty, or its message "
                            "has a line like a diff's", "mend the commit")
    old = folders.load(root, name) if name in folders.names(root) else {}
    _check_fixes(name, old, files)
    letter = fresh[COVER].decode("utf-8", "surrogateescape")
    if COVER in old:
        letter = cover.renew(old[COVER].decode("utf-8", "surrogateescape"), letter)
    files[COVER] = letter.encode("utf-8", "surrogateescape")
    return dict(sorted(files.items()))


def _commit(git: Git, what: str, todo: str) -> str:
    done = git.attempt("-c", "safe.directory=*", "rev-parse", "-q", "--verify",
                       f"{what}^{{commit}}") if git.folder.is_dir() else None
    if done is None or done.returncode != 0:
        raise GateError(UNUSABLE, f"{git.folder} has no commit {what}", todo)
    return done.stdout.decode().strip()


def _check_line(git: Git, base: str, tip: str) -> None:
    """Raise GateError unless base..tip is a line of one or more commits."""
    if git.attempt("merge-base", "--is-ancestor", base, tip).returncode != 0:
        raise GateError(UNUSABLE, f"{base[:12]} is no ancestor of {tip[:12]} in {git.folder}",
                        "give the commit before the first patch with --base")
    if git.text("rev-list", "--count", f"{base}..{tip}") == "0":
        raise GateError(UNUSABLE, f"there is no patch on the branch in {git.folder}",
                        "check out the branch with the patches, or give another --base")
    if git.text("rev-list", "--merges", "--count", f"{base}..{tip}") != "0":
        raise GateError(UNUSABLE, f"there is a merge on the branch in {git.folder}",
                        "rebase the branch: a series is a line of commits")


def _check_fixes(name: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> None:
    """Raise GateError if a fix, as the gate knows its patches, would be lost."""
    for fix in FIXES:
        for glob in fix.patches:
            if _matching(old, glob) and not _matching(new, glob):
                raise GateError(UNUSABLE, f"set {name} would lose {_matching(old, glob)[0]}, "
                                f"which is of fix {fix.id}",
                                "export with --state broken to have all patches, or change the "
                                "table FIXES of the gate")


def _matching(files: Mapping[str, bytes], glob: str) -> List[str]:
    return [name for name in files if fnmatch.fnmatch(name, glob)]
