# SPDX-License-Identifier: GPL-2.0
"""Builds the kernel after every patch: what git rebase --exec would do, in the gate's folders."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, NamedTuple, Sequence, Set, Tuple

from gatelib.base.errors import MACHINE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.kernels import FLAVOURS, FRAGMENTS
from gatelib.data.tests import SELFTESTS_DIR
from gatelib.guests import initramfs
from gatelib.kernels import build, identity
from gatelib.trees.files import Blob, Files, write_blob
from gatelib.trees.patches import touched
from gatelib.trees.tree import Tree
from serieslib.base.report import Finding, Report
from serieslib.checks import compiled
from serieslib.checks.compiled import Said, Watcher
from serieslib.mails.series import Series

_SYMBOL = re.compile(r"^(?:menu)?config (\w+)$", re.M)
_OPTION = re.compile(r"^(?:CONFIG_(\w+)=.*|# CONFIG_(\w+) is not set)$")


class _Built(NamedTuple):
    """How a state of the tree built in one flavour."""
    error: str		# "" if it did
    said: Said


def symbols(files: Files) -> Set[str]:
    """Return the names of the options that the Kconfig files among files define."""
    return {name for path, blob in files.items()
            if blob is not None and Path(path).name.startswith("Kconfig")
            for name in _SYMBOL.findall(blob.data.decode("utf-8", "replace"))}


def without(text: str, absent: Set[str]) -> str:
    """Return a configuration fragment without the options in absent."""
    kept = []
    for line in text.splitlines(True):
        found = _OPTION.match(line.strip())
        if not found or (found.group(1) or found.group(2)) not in absent:
            kept.append(line)
    return "".join(kept)


class Walk:
    """One tree, and what its states were seen to build like."""

    def __init__(self, tree: Tree, work: Workspace, temp: Path,
                 flavours: Sequence[str] = FLAVOURS) -> None:
        """temp: a folder for configuration fragments."""
        self._tree = tree
        self._work = work
        self._temp = temp
        self._flavours = flavours
        self._seen: Dict[Tuple[str, str], _Built] = {}
        self._watchers: Dict[str, Watcher] = {}

    def series(self, series: Series, report: Report) -> None:
        """Build the series's base and then every patch on top of it.

        Raises GateError if the base does not build: then nothing can be said.
        """
        last = symbols(series.steps[-1])
        before: Dict[str, _Built] = {}
        for number, files in enumerate(series.steps):
            name = series.patches[number - 1].name if number else "base"
            for flavour in self._flavours:
                absent = last - symbols(files)
                built = self._build(series, name, files, absent, flavour, report)
                if number:
                    self._judge(f"{series.name} {name}", flavour, before[flavour], built, report)
                elif built.error:
                    raise GateError(MACHINE, f"{series.name} {flavour}: the base does not build "
                                    f"without the series: {built.error}",
                                    "mend the tree or the machine")
                before[flavour] = built
            if number and "x86_64" in before:
                self._selftests(series, series.patches[number - 1], files, before["x86_64"], report)

    def _selftests(self, series: Series, patch: Path, files: Files, kernel: _Built,
                   report: Report) -> None:
        """Build the selftests if the patch touches them; they need the kernel's headers."""
        names = [name for name in touched([patch]) if name.startswith(f"{SELFTESTS_DIR}/")]
        if not names:
            return
        label, key = f"{series.name} {patch.name}", (identity.files_digest(files), SELFTESTS_DIR)
        if kernel.error:
            report.skip(label, "selftests build", "the kernel does not")
            return
        if key not in self._seen:
            self._tree.switch(files)
            log = self._log(series, patch.name, "selftests")
            with report.stage(f"{series.name} {patch.name}: build selftests"):
                self._seen[key] = _Built(self._really_build_selftests(names, log), {})
        error = self._seen[key].error
        report.judge(label, "selftests build",
                    [Finding(error, "mend the patch")] if error else [])

    def _really_build_selftests(self, names: Sequence[str], log: Path) -> str:
        """Return what is wrong with the selftests in the files names, "" if nothing is."""
        try:
            initramfs.make_parts(self._tree, (), self._work, log)
        except GateError as err:
            if err.fatal:
                raise
            return _why(err, log)
        programs = "|".join(re.escape(Path(name).name) for name in names)
        said = re.search(rf"^\S*?\b(?:{programs}):\d+.*\bwarning: .*$",
                         log.read_text("utf-8", "replace"), re.M)
        return said.group(0) if said else ""

    def _log(self, series: Series, name: str, what: str) -> Path:
        return (self._work.out
                / f"{self._tree.folder.name}-{series.state}-{Path(name).stem}-{what}.log")

    def _judge(self, label: str, flavour: str, before: _Built, built: _Built,
               report: Report) -> None:
        failed = [Finding(built.error, "mend the patch, so that each one builds without those "
                          "after it")] if built.error else []
        report.judge(label, f"builds alone as {flavour}", failed)
        if built.error or before.error:
            report.skip(label, f"no new warning as {flavour}",
                       "it or the one before does not build")
            return
        new = compiled.new(before.said, built.said)
        lines = [f"{unit}.c: {line}" for unit, found in new.items() for line in found]
        report.judge(label, f"no new warning as {flavour}", [
            Finding(f"gcc with W=1 or sparse says of {line}", "mend the patch") for line in lines])

    def _build(self, series: Series, name: str, files: Files, absent: Set[str], flavour: str,
               report: Report) -> _Built:
        """Build one state, unless the same kernel was seen: selftests are no part of it."""
        key = (identity.files_digest({path: blob for path, blob in files.items()
                     if not path.startswith(f"{SELFTESTS_DIR}/")}), flavour)
        if key not in self._seen:
            with report.stage(f"{series.name} {name}: build as {flavour}"):
                self._seen[key] = self._really_build(series, name, files, absent, flavour)
        return self._seen[key]

    def _really_build(self, series: Series, name: str, files: Files, absent: Set[str],
                      flavour: str) -> _Built:
        self._tree.switch(files)
        log = self._log(series, name, flavour)
        watcher = self._watchers.get(flavour)
        if watcher is None:
            dirs = compiled.directories(sorted(touched(series.patches)), self._tree.src)
            watcher = self._watchers[flavour] = Watcher(self._tree, flavour, dirs, self._work)
        try:
            build.build(self._tree, flavour, self._configured(absent, flavour), log)
            return _Built("", dict(watcher.look(log.with_suffix(".w1.log"))))
        except GateError as err:
            if err.fatal:
                raise
            return _Built(_why(err, log), {})

    def _configured(self, absent: Set[str], flavour: str) -> Workspace:
        """Return the work with fragments that do not ask for options of later patches."""
        root = self._temp / ("fragments-" + "-".join(sorted(absent)) if absent else "fragments")
        for each in FRAGMENTS[flavour]:
            text = (self._work.root / each).read_text("utf-8")
            (root / each).parent.mkdir(parents=True, exist_ok=True)
            write_blob(root / each, Blob(without(text, absent).encode()))
        return self._work._replace(root=root)


def _why(err: GateError, log: Path) -> str:
    """Return the error as one line with the compiler's first one, as far as it is known."""
    lines = err.tail.splitlines()
    telling = [line for line in lines if re.search(r"\berror\b", line)] or lines
    return "; ".join([err.what, *telling[:1], f"read {err.log or log}"])

