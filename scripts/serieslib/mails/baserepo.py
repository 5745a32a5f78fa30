# SPDX-License-Identifier: GPL-2.0
"""Git repositories made of a tree, for patches to be applied in.

The whole tree is put into one bare repository in the cache.  Clones of it
borrow its objects and have only those files in their work tree that the
patches touch, so that one is made in a second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterable, Optional

from gatelib.base import proc
from gatelib.base.errors import MACHINE
from gatelib.base.workspace import Workspace
from gatelib.data.trees import SPACE_TREE
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.tree import PathTree
from serieslib.base.git import Git, isolated
from serieslib.base.tables import BASE_TAG
from serieslib.mails.series import Series


def base_commit(series: Series, work: Workspace) -> str:
    """Return the commit of the series's base in the tree's repository; make it if need be.

    The work tree of the gate is switched to the base.
    """
    tree = series.tree
    tree.switch(series.plan.files)
    folder = tree.folder / "series.git"
    env = dict(isolated(work.env), GIT_DIR=str(folder), GIT_WORK_TREE=str(tree.src))
    log = work.out / f"{tree.folder.name}-{series.state}-git.log"
    log.unlink(missing_ok=True)
    git = Git(tree.src, env)
    if not (folder / "HEAD").exists():
        proc.need_space(tree.folder, SPACE_TREE / 2, "a git repository of the tree")
        git.run("init", "-q")
    (folder / "index.lock").unlink(missing_ok=True)	# of one that was killed
    work.must(["git", "-c", "core.autocrlf=false", "-c", "core.looseCompression=1", "-c",
                "core.fsync=none", "-c", "gc.auto=0", "add", "-A", "-f"], log, "git add failed",
               "look for the reason", cwd=tree.src, env=env, status=MACHINE)
    written = git.text("write-tree")
    return git.text("commit-tree", written, "-m",
                    f"Linux {tree.version.full}, {series.state}, without tests")


def clone(series: Series, commit: str, target: Path, work: Workspace, names: Iterable[str]) -> Git:
    """Make target a repository with the base checked out, tagged "base".

    names: files that the work tree is to have.
    """
    git = Git(target, isolated(dict(work.env, GIT_CEILING_DIRECTORIES=str(target.parent))))
    git.init()
    git.borrow(series.tree.folder / "series.git" / "objects")
    info = git.folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    wanted = "".join(f"/{name}\n" for name in sorted(names))
    write_blob(info / "sparse-checkout", Blob(wanted.encode()))
    git.run("config", "core.sparseCheckout", "true")
    git.run("tag", BASE_TAG, commit)
    git.run("reset", "-q", "--hard", commit)
    return git


def known_base(series: Series, work: Workspace) -> Optional[str]:
    """Return the commit that other people know the base by, None if there is none.

    That is the commit checked out in the user's own git tree, provided that
    the files which the patches touch are as they were committed.
    """
    tree = series.tree
    if not isinstance(tree, PathTree) or not (tree.original / ".git").exists():
        return None
    git = Git(tree.original, isolated(work.env))
    safe = ("-c", "safe.directory=*")
    head = git.attempt(*safe, "rev-parse", "-q", "--verify", "HEAD^{commit}")
    if head.returncode != 0:
        return None
    for name, blob in series.plan.files.items():
        there = git.attempt(*safe, "cat-file", "blob", f"HEAD:{name}")
        if (there.stdout if there.returncode == 0 else None) != (blob.data if blob else None):
            return None
    return head.stdout.decode().strip()
