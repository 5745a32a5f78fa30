# SPDX-License-Identifier: GPL-2.0
"""What all steps of a run share: its folders, its environment and its progress lines."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Mapping, NamedTuple, Optional, Sequence, TextIO

from gatelib.base import proc
from gatelib.base.errors import GateError, blamed
from gatelib.data.causes import CAUSES


class Progress:
    """One line a stage, with a live elapsed time where the output is a terminal."""

    def __init__(self, out: Optional[TextIO] = None) -> None:
        self._out = out if out is not None else sys.stdout
        self._tty = self._out.isatty()
        self._text = ""
        self._began = 0.0
        self._shown = -1

    def say(self, line: str) -> None:
        """Print one line."""
        print(line, file=self._out, flush=True)

    def tick(self) -> None:
        """Bring the elapsed time of the running stage up to date."""
        seconds = int(time.monotonic() - self._began)
        if self._tty and self._text and seconds != self._shown:
            self._shown = seconds
            self._out.write(f"\r{self._text} ... {seconds} s")
            self._out.flush()

    @contextmanager
    def stage(self, text: str) -> Iterator[None]:
        """Show text while the body runs, then how long it took and whether it failed."""
        self._text, self._began, self._shown = text, time.monotonic(), -1
        self._out.write(f"{text} ...")
        self._out.flush()
        end = "failed"
        try:
            yield
            end = "done"
        except GateError:
            raise
        except BaseException:
            end = "stopped"
            raise
        finally:
            start = "\r" + text + " ..." if self._tty else ""
            self._out.write(f"{start} {time.monotonic() - self._began:.1f} s, {end}\n")
            self._out.flush()
            self._text = ""


class Workspace(NamedTuple):
    """Where a run works and how."""
    root: Path			# the project
    cache: Path
    out: Path			# logs and results
    jobs: int
    env: Mapping[str, str]	# for children
    progress: Progress

    def run(self, argv: Sequence[str], log: Path, *, cwd: Optional[Path] = None,
            env: Optional[Mapping[str, str]] = None) -> int:
        """Run argv, its output added to log; return its exit status.

        Raises GateError if it failed for want of disk space, or cannot be started.
        """
        before = log.stat().st_size if log.exists() else 0
        status = proc.run(argv, log=log, cwd=cwd, env=self.env if env is None else env,
                          tick=self.progress.tick).status
        if status != 0:
            with open(log, "rb") as file:
                file.seek(before)
                said = file.read()
            if b"No space left on device" in said:
                raise proc.no_space(self.cache, f"{Path(argv[0]).name} could not write", log)
            if status < 0 or b"Killed signal terminated program" in said:
                raise blamed("host", f"{Path(argv[0]).name} was killed", "see whether memory was "
                             "short, and try again", log=log, tail=proc.tail(log))
        return status

    def must(self, argv: Sequence[str], log: Path, what: str, todo: str, *,
             cwd: Optional[Path] = None, env: Optional[Mapping[str, str]] = None,
             status: Optional[int] = None, cause: str = "harness") -> None:
        """Run argv like run(); raise GateError with status or that of the cause if it fails."""
        if self.run(argv, log, cwd=cwd, env=env) != 0:
            raise GateError(CAUSES[cause] if status is None else status, what, todo, log=log,
                            tail=proc.tail(log), cause=cause)
