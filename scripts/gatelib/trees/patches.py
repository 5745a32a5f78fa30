# SPDX-License-Identifier: GPL-2.0
"""Patches as functions from file contents to file contents.

Which form of a fix a tree carries is found out by trying the patches on the
tree's own files in a scratch folder; no tree is written to here.
"""

from __future__ import annotations

import fnmatch
import os
import re
import tempfile
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set

from gatelib.base import proc
from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.trees import COVER_LETTER, FIXES, PATCH_SETS, REVERSE_DIR, Fix
from gatelib.trees.files import Files, Lookup, read_blob, write_file

ABSENT = "absent"
OURS = "ours"
UPSTREAM = "upstream"

_DIFF = re.compile(r"^diff --git a/(\S+) b/(\S+)$", re.M)
_FAILED = re.compile(r"^error: patch failed: (.+):(\d+)$", re.M)
_ERROR = re.compile(r"^error: (.+)$", re.M)


class DoesNotApply(Exception):
    """A patch does not fit: its message names the patch, the file and the hunk."""


class PatchSet(NamedTuple):
    """One folder of patches/: a whole series, sorted by what the gate does with it."""
    name: str
    fixes: Mapping[str, List[Path]]	# fix id -> its patches in order
    tests: List[Path]


class Plan(NamedTuple):
    """What one state makes of a tree, without the tests."""
    found: Dict[str, str]	# fix id -> ABSENT, OURS or UPSTREAM in the tree as it came
    present: Dict[str, str]	# fix id -> the same in this state
    files: Files		# every file that the patches touch, as this state wants it


def touched(patches: Iterable[Path]) -> Set[str]:
    """Return the names of all files that the patches touch."""
    names: Set[str] = set()
    for patch in patches:
        for before, after in _DIFF.findall(patch.read_text("utf-8", "replace")):
            names.update((before, after))
    return names


class Patches:
    """The project's patches folder, and the operations that a state is made of."""

    def __init__(self, root: Path, env: Mapping[str, str], scratch: Path) -> None:
        """root: patches/.  scratch: folder for temporary files.

        Raises GateError if root holds no complete set.
        """
        self._env = dict(env, GIT_CEILING_DIRECTORIES=str(scratch.resolve()),
                         GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull)
        self._scratch = scratch
        self._reverse = {fix.id: [root / REVERSE_DIR / name for name in fix.reverse]
                         for fix in FIXES}
        self.sets = [found for found in (_read_set(root / name) for name in PATCH_SETS)
                     if found is not None]
        complete = any(all(each.fixes[fix.id] for fix in FIXES) for each in self.sets)
        absent = [str(path) for path in self._reverses() if not path.is_file()]
        if not complete or absent:
            what = f"missing {' '.join(absent)}" if absent else "no set has all fixes"
            raise GateError(UNUSABLE, f"{root} is not complete: {what}",
                            "check out the whole project")

    def _reverses(self) -> List[Path]:
        return [path for paths in self._reverse.values() for path in paths]

    def touched(self) -> Set[str]:
        """Return the names of all files that any patch touches."""
        every = self._reverses()
        for each in self.sets:
            every += each.tests
            for fix in each.fixes.values():
                every += fix
        return touched(every)

    def apply(self, patches: Sequence[Path], files: Files, reverse: bool = False) -> Files:
        """Apply patches one after the other (reverse: take them out, last first).

        Returns the new files; the ones given stay as they are.
        Raises DoesNotApply with the first hunk that does not fit.
        """
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            base = Path(folder)
            names = touched(patches)
            for name in names:
                write_file(base / name, files.get(name))
            for patch in (reversed(patches) if reverse else patches):
                argv = ["git", "apply", "--whitespace=nowarn"]
                if reverse:
                    argv.append("-R")
                done = proc.capture([*argv, str(patch)], env=self._env, cwd=base)
                if done.returncode != 0:
                    raise DoesNotApply(_why(patch, done.stderr.decode("utf-8", "replace")))
            changed = dict(files)
            changed.update({name: read_blob(base / name) for name in names})
            return changed

    def _fits(self, patches: Sequence[Path], files: Files,
              reverse: bool = False) -> Optional[Files]:
        try:
            return self.apply(patches, files, reverse)
        except DoesNotApply:
            return None

    def ordered(self, series: str) -> List[PatchSet]:
        """Return the sets, the one for the kernel series (as "6.12") before all others."""
        return sorted(self.sets, key=lambda each: each.name != series)

    def _ours(self, fix: Fix, files: Files, series: str, reverse: bool) -> Optional[Files]:
        for each in self.ordered(series):
            if each.fixes[fix.id]:
                changed = self._fits(each.fixes[fix.id], files, reverse)
                if changed is not None:
                    return changed
        return None

    def _upstream(self, fix: Fix, files: Files, reverse: bool) -> Optional[Files]:
        """Take upstream's form of the fix out (reverse: put it in), None if that does not fit."""
        tried = (self._fits([path], files, reverse) for path in self._reverse[fix.id])
        return next((changed for changed in tried if changed is not None), None)

    def find(self, fix: Fix, files: Files, series: str) -> str:
        """Return whether the fix is ABSENT from files, or there as OURS or UPSTREAM.

        Raises GateError, naming file and hunk, if no patch fits either way.
        """
        # The order counts: a set made for a tree with upstream's fix applies
        # to that tree, which does not make the fix absent.
        if self._upstream(fix, files, reverse=False) is not None:
            return UPSTREAM
        if self._ours(fix, files, series, reverse=True) is not None:
            return OURS
        if self._ours(fix, files, series, reverse=False) is not None:
            return ABSENT
        raise GateError(UNUSABLE, f"fix {fix.id} is neither in the tree nor does it apply: "
                        + self._complaint(fix, files, series),
                        "rebase the patch on this tree, or judge the tree with --state as-is")

    def _complaint(self, fix: Fix, files: Files, series: str) -> str:
        for each in self.ordered(series):
            if each.fixes[fix.id]:
                try:
                    self.apply(each.fixes[fix.id], files)
                except DoesNotApply as err:
                    return str(err)
        return "no patch for it"

    def _remove(self, fix: Fix, files: Files, series: str) -> Files:
        # Ours may sit on top of upstream's, so look again after each step.
        for _ in range(3):
            state = self.find(fix, files, series)
            if state == ABSENT:
                return files
            changed = self._upstream(fix, files, reverse=False) if state == UPSTREAM else \
                self._ours(fix, files, series, reverse=True)
            assert changed is not None	# find() has just done the same
            files = changed
        raise GateError(UNUSABLE, f"fix {fix.id} is still there after it was taken out",
                        "choose another tree")

    def _add(self, fix: Fix, files: Files, series: str) -> Files:
        changed = self._ours(fix, files, series, reverse=False)
        if changed is None:
            raise GateError(UNUSABLE, f"fix {fix.id} does not apply: "
                            + self._complaint(fix, files, series),
                            "rebase the patch on this tree or choose another tree")
        return changed

    def _add_upstream(self, fix: Fix, files: Files) -> Files:
        changed = self._upstream(fix, files, reverse=True)
        if not fix.reverse:
            raise GateError(UNUSABLE, f"fix {fix.id} has no upstream form", "use --state fixed")
        if changed is None:
            raise GateError(UNUSABLE, f"mainline's form of fix {fix.id} does not fit this tree",
                            f"add a form of {fix.reverse[0]} that does to patches/{REVERSE_DIR}/")
        return changed

    def plan(self, state: str, lookup: Lookup, series: str) -> Plan:
        """Return what the state makes of a tree.

        state: one of data.trees.STATES; "as-is" changes nothing.
        lookup: gives the tree's files as they came.
        series: the tree's kernel series, as "6.12".
        Raises GateError if a patch is neither in the tree nor fits.
        """
        files: Files = {name: lookup(name) for name in sorted(self.touched())}
        found = {fix.id: self.find(fix, files, series) for fix in FIXES}
        present = dict(found)
        for fix in FIXES:
            if state == "as-is" or _is_wanted(fix, state, found[fix.id]):
                continue
            files = self._remove(fix, files, series)
            present[fix.id] = ABSENT
            if state == "fixed":
                files = self._add(fix, files, series)
                present[fix.id] = OURS
            elif state == "upstream":
                files = self._add_upstream(fix, files)
                present[fix.id] = UPSTREAM
        return Plan(found, present, files)


def _is_wanted(fix: Fix, state: str, found: str) -> bool:
    """Return whether the fix is already as the state wants it."""
    same = found in (OURS, UPSTREAM) and fix.same_as_upstream
    return {"broken": found == ABSENT, "fixed": found == OURS or same,
            "upstream": found == UPSTREAM or same}[state]


def _read_set(folder: Path) -> Optional[PatchSet]:
    """Return the set in folder, or None if there is none."""
    names = sorted(path for path in folder.glob("[0-9]*.patch")
                   if not fnmatch.fnmatch(path.name, COVER_LETTER))
    if not names:
        return None
    fixes: Dict[str, List[Path]] = {}
    for fix in FIXES:
        fixes[fix.id] = [path for path in names
                         if any(fnmatch.fnmatch(path.name, glob) for glob in fix.patches)]
    used = {path for paths in fixes.values() for path in paths}
    return PatchSet(folder.name, fixes, [path for path in names if path not in used])


def _why(patch: Path, stderr: str) -> str:
    """Return git's complaint as "patch: file, hunk at line N"."""
    name = f"{patch.parent.name}/{patch.name}"
    hunk = _FAILED.search(stderr)
    if hunk:
        return f"{name}: {hunk.group(1)}, hunk at line {hunk.group(2)}"
    other = _ERROR.search(stderr)
    return f"{name}: {other.group(1) if other else stderr.strip() or 'git apply failed'}"
