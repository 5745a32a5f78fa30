# SPDX-License-Identifier: GPL-2.0
"""A git repository with one commit, made of a tree in some state."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gatelib.base import proc
from gatelib.base.errors import UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.trees import SPACE_TREE
from gatelib.trees.files import Files, write_blob
from gatelib.trees.tree import Tree


def make(tree: Tree, files: Files, state: str, target: Path, work: Workspace) -> None:
    """Make target a git repository of the tree with the given files.

    target: a folder that is not there yet, and comes into being only when
    all is done.  Raises GateError if it is there or cannot be made.
    """
    if target.exists() or target.is_symlink():
        raise GateError(UNUSABLE, f"--git {target} is there already", "give a new folder")
    if not target.parent.is_dir():
        raise GateError(UNUSABLE, f"--git {target}: there is no folder {target.parent}", "make it")
    proc.need_space(target.parent, SPACE_TREE, "a git repository of the tree")
    log = work.out / f"{tree.folder.name}-git.log"
    log.unlink(missing_ok=True)
    git = ["git", "-c", "core.autocrlf=false", "-c", "core.looseCompression=1", "-c", "gc.auto=0",
           "-c", "user.name=gate", "-c", "user.email=gate@localhost"]
    with work.progress.stage(f"{tree.name} {state}: make git repository {target}"), \
            tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as temp:
        made = Path(temp) / target.name
        todo = "look for the reason"
        work.must(["cp", "-a", str(tree.src), str(made)], log, "cannot copy the tree", todo)
        for name, blob in files.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            write_blob(made / name, blob)
        for words in (["init", "-q", "-b", "master"], ["add", "-A", "-f"],
                      ["commit", "-q", "-m", f"Linux {tree.version.full}, {state}"]):
            work.must([*git, *words], log, f"git {words[0]} failed", todo, cwd=made)
        os.rename(made, target)
