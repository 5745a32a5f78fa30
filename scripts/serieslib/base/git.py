# SPDX-License-Identifier: GPL-2.0
"""Git, kept apart from the user's configuration."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, Mapping, Optional, Sequence

from gatelib.base import proc
from gatelib.base.errors import MACHINE, GateError
from serieslib.base.tables import FORMAT

IDENT = ("series", "series@localhost")
_NEVER = "1970-01-01T00:00:00 +0000"


def isolated(env: Mapping[str, str], config: Path = Path(os.devnull)) -> Dict[str, str]:
    """Return env with no git configuration but that in the file config.

    The identity is a made-up one, at a fixed time, so that equal trees make
    equal commits.
    """
    return dict(env, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=str(config),
                GIT_AUTHOR_NAME=IDENT[0], GIT_AUTHOR_EMAIL=IDENT[1], GIT_AUTHOR_DATE=_NEVER,
                GIT_COMMITTER_NAME=IDENT[0], GIT_COMMITTER_EMAIL=IDENT[1],
                GIT_COMMITTER_DATE=_NEVER, GIT_TERMINAL_PROMPT="0")


class Git:
    """A repository, and git run in it."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self.env = env

    def run(self, *words: str, data: Optional[bytes] = None,
            env: Optional[Mapping[str, str]] = None) -> bytes:
        """Run git, return its output; raise GateError with its last words if it fails."""
        done = self.attempt(*words, data=data, env=env)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
            last = proc.printable(said.splitlines()[-1]) if said else "no message"
            raise GateError(MACHINE, f"git {words[0]} failed in {self.folder}: {last}",
                            "look for the reason")
        return done.stdout

    def attempt(self, *words: str, data: Optional[bytes] = None,
                env: Optional[Mapping[str, str]] = None) -> "subprocess.CompletedProcess[bytes]":
        """Run git, return how it ended."""
        return proc.capture(["git", "-c", "core.autocrlf=false", "-c", "gc.auto=0", "-c",
                             "maintenance.auto=false", *words], data=data, cwd=self.folder,
                            env=dict(self.env, **(env or {})))

    def text(self, *words: str) -> str:
        """Run git, return its output as text without the white space around it."""
        return self.run(*words).decode("utf-8", "surrogateescape").strip()

    def init(self) -> None:
        """Make the repository."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.run("init", "-q", "-b", "main")

    def borrow(self, objects: Path) -> None:
        """Use the objects of another repository as well."""
        alternates = self.folder / ".git" / "objects" / "info" / "alternates"
        alternates.write_bytes(os.fsencode(objects) + b"\n")

    def am(self, patches: Sequence[Path], *options: str) -> Optional[str]:
        """Apply mails on top of HEAD; return None, or what git says if one does not apply.

        After a failure the repository is as it was before.
        """
        done = self.attempt("am", "-q", "--keep-cr", *options, *[str(path) for path in patches])
        if done.returncode == 0:
            return None
        self.attempt("am", "--abort")
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        lines = [line for line in text.splitlines() if line and not line.startswith("hint:")]
        return "; ".join(proc.printable(line) for line in lines[:3]) or "git am failed"

    def format(self, base: str, *options: str, tip: str = "HEAD") -> Dict[str, bytes]:
        """Return file name -> mail of the commits base..tip, as git format-patch writes them."""
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix="format-") as temp:
            self.run("format-patch", "-q", *FORMAT, *options, "-o", temp, f"{base}..{tip}")
            return {path.name: path.read_bytes() for path in sorted(Path(temp).iterdir())}


@contextmanager
def scratch(env: Mapping[str, str], where: Path) -> Iterator[Git]:
    """Give a new repository below the folder where, for as long as the body runs."""
    with tempfile.TemporaryDirectory(dir=where, prefix="series-") as temp:
        git = Git(Path(temp) / "repo", isolated(dict(env, GIT_CEILING_DIRECTORIES=str(where))))
        git.init()
        yield git
