# SPDX-License-Identifier: GPL-2.0
"""From a tree and patches/ to a folder of mails."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Dict, NamedTuple, Optional, Tuple

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.trees.patches import Patches
from gatelib.trees.tree import Tree
from serieslib.base.git import Git
from serieslib.base.patchfile import read
from serieslib.mails import address, baserepo, letters
from serieslib.mails.letters import Letter
from serieslib.mails.series import Series, choose


class Export(NamedTuple):
    """What the user asked for."""
    state: str
    sender: Optional[str]	# None: the author of the first patch
    version: int
    out: Path			# where the mails go
    git: Optional[Path]		# where a repository with the series goes


def applied(series: Series, target: Path, work: Workspace) -> Tuple[Git, str]:
    """Make target a repository with the base and the series on branch "series".

    Returns it and the base's commit.
    """
    base = baserepo.base_commit(series, work)
    git = baserepo.clone(series, base, target, work, series.plan.files)
    git.run("checkout", "-q", "-b", "series")
    wrong = git.am(series.patches)
    if wrong is not None:
        raise GateError(UNUSABLE, f"git am does not take set {series.set}: {wrong}",
                        "take the set from a git branch again with series import")
    return git, base


def compose(series: Series, git: Git, base: str, work: Workspace, sender: Optional[str] = None,
            version: int = 1) -> Dict[str, bytes]:
    """Return the mails of a series that is applied in git."""
    who = letters.author(series.patches) if sender is None else sender
    address.parse(who, "--sender")
    each = [read(path.read_bytes()) for path in series.patches]
    people = address.people(series.tree, series.patches, each, who, work)
    old = letters.previous(work.root, series, git, base, version) if version > 1 else None
    letter = Letter(who, version, people, baserepo.known_base(series, work), old)
    return letters.write(series, git, base, letter, letters.cover_of(work.root, series))


def export(tree: Tree, options: Export, patches: Patches, work: Workspace, temp: Path) -> None:
    """Write the mails of the tree's series, and say what was written.

    temp: a folder for a repository that is not kept.
    """
    if options.sender is not None:
        address.parse(options.sender, "--sender")
    if options.git is not None and (options.git.exists() or not options.git.parent.is_dir()):
        raise GateError(UNUSABLE, f"--git {options.git} is there already, or its parent is not",
                        "give a new folder in one that is there")
    letters.check_out(options.out)
    if options.git == options.out:
        raise GateError(UNUSABLE, f"--git and --out are both {options.out}", "give two folders")
    series = choose(tree, options.state, patches)
    with work.progress.stage(f"{series.name}: git repository with set {series.set}"):
        git, base = applied(series, temp / "repo", work)
    made = compose(series, git, base, work, options.sender, options.version)
    letters.save(made, options.out)
    if options.git is not None:
        _keep(git, series, options.git, work)
    left = "".join(f"; left out: {path.name}" for path in series.left_out)
    work.progress.say(f"series: {len(made) - 1} patches and a cover letter in {options.out}{left}")


def _keep(git: Git, series: Series, target: Path, work: Workspace) -> None:
    """Make target a repository of its own with all files, base and series.

    The borrowed objects are copied as they are: git clone --dissociate would
    pack them anew, which takes minutes.
    """
    with work.progress.stage(f"make git repository {target}"), \
            tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temp:
        made = Path(temp) / target.name
        git.run("clone", "-q", "--no-hardlinks", "-b", "series", ".", str(made))
        objects = made / ".git" / "objects"
        shutil.copytree(series.tree.folder / "series.git" / "objects", objects, dirs_exist_ok=True)
        (objects / "info" / "alternates").unlink()
        Git(made, git.env).run("remote", "remove", "origin")
        os.rename(made, target)
