# SPDX-License-Identifier: GPL-2.0
"""From a tree and patches/ to a folder of mails."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Dict, NamedTuple, Optional, Tuple

from gatelib.bench import Bench
from gatelib.errors import UNUSABLE, GateError
from gatelib.patches import Patches
from gatelib.trees import Tree

from . import address, baserepo, mails
from .choose import Choice, choose
from .git import Git
from .mails import Letter
from .patchfile import read


class Export(NamedTuple):
    """What the user asked for."""
    state: str
    sender: Optional[str]	# None: the author of the first patch
    version: int
    out: Path			# where the mails go
    git: Optional[Path]		# where a repository with the series goes


def applied(choice: Choice, target: Path, bench: Bench) -> Tuple[Git, str]:
    """Make target a repository with the base and the series on branch "series".

    Returns it and the base's commit.
    """
    base = baserepo.base_commit(choice, bench)
    git = baserepo.clone(choice, base, target, bench, choice.plan.files)
    git.run("checkout", "-q", "-b", "series")
    wrong = git.am(choice.patches)
    if wrong is not None:
        raise GateError(UNUSABLE, f"git am does not take set {choice.set}: {wrong}",
                        "take the set from a git branch again with series import")
    return git, base


def compose(choice: Choice, git: Git, base: str, bench: Bench, sender: Optional[str] = None,
            version: int = 1) -> Dict[str, bytes]:
    """Return the mails of a series that is applied in git."""
    who = mails.author(choice.patches) if sender is None else sender
    address.parse(who, "--sender")
    each = [read(path.read_bytes()) for path in choice.patches]
    people = address.people(choice.tree, choice.patches, each, who, bench)
    old = mails.previous(bench.root, choice, git, base, version) if version > 1 else None
    letter = Letter(who, version, people, baserepo.known_base(choice, bench), old)
    return mails.write(choice, git, base, letter, mails.cover_of(bench.root, choice))


def export(tree: Tree, wish: Export, patches: Patches, bench: Bench, temp: Path) -> None:
    """Write the mails of the tree's series, and say what was written.

    temp: a folder for a repository that is not kept.
    """
    if wish.sender is not None:
        address.parse(wish.sender, "--sender")
    if wish.git is not None and (wish.git.exists() or not wish.git.parent.is_dir()):
        raise GateError(UNUSABLE, f"--git {wish.git} is there already, or its parent is not",
                        "give a new folder in one that is there")
    mails.check_out(wish.out)
    if wish.git == wish.out:
        raise GateError(UNUSABLE, f"--git and --out are both {wish.out}", "give two folders")
    choice = choose(tree, wish.state, patches)
    with bench.progress.stage(f"{choice.name}: git repository with set {choice.set}"):
        git, base = applied(choice, temp / "repo", bench)
    made = compose(choice, git, base, bench, wish.sender, wish.version)
    mails.save(made, wish.out)
    if wish.git is not None:
        _keep(git, choice, wish.git, bench)
    left = "".join(f"; left out: {path.name}" for path in choice.left_out)
    bench.progress.say(f"series: {len(made) - 1} patches and a cover letter in {wish.out}{left}")


def _keep(git: Git, choice: Choice, target: Path, bench: Bench) -> None:
    """Make target a repository of its own with all files, base and series.

    The borrowed objects are copied as they are: git clone --dissociate would
    pack them anew, which takes minutes.
    """
    with bench.progress.stage(f"make git repository {target}"), \
            tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temp:
        made = Path(temp) / target.name
        git.run("clone", "-q", "--no-hardlinks", "-b", "series", ".", str(made))
        objects = made / ".git" / "objects"
        shutil.copytree(choice.tree.folder / "series.git" / "objects", objects, dirs_exist_ok=True)
        (objects / "info" / "alternates").unlink()
        Git(made, git.env).run("remote", "remove", "origin")
        os.rename(made, target)
