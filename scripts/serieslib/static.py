# SPDX-License-Identifier: GPL-2.0
"""The checks of a whole set that need no kernel tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Mapping

from gatelib.errors import GateError

from . import cover, refresh, sets
from .lint import lint, numbering
from .owned import added, belongs, blob, owned
from .patchfile import read
from .tables import COVER
from .tally import Finding, Tally

_REFRESH = "type scripts/series refresh"


def check_set(root: Path, name: str, env: Mapping[str, str], where: Path, tally: Tally) -> bool:
    """Check the set's files; return whether all is well.

    where: folder for temporary files.
    """
    files = sets.load(root, name)
    patches = sets.patches(files)
    good = True
    for each, data in patches.items():
        for check, findings in lint(data).items():
            good = tally.judge(f"{name}/{each}", check, findings) and good
    for each, findings in numbering(patches).items():
        good = tally.judge(f"{name}/{each}", "numbering", findings) and good
    for each, findings in sources(root, patches).items():
        good = tally.judge(f"{name}/{each}", "equals kunit/ and selftests/", findings) and good
    good = tally.judge(f"{name}/{COVER}", "cover letter", _letter(files)) and good
    return _up_to_date(root, name, env, where, tally) and good


def sources(root: Path, patches: Mapping[str, bytes]) -> Dict[str, List[Finding]]:
    """Return file name -> where a patch and the project's copies of the tests differ.

    What is in no patch at all is held against the last one.
    """
    results: Dict[str, List[Finding]] = {name: [] for name in patches}
    places = owned(root)
    seen: Dict[str, str] = {}
    for name, data in patches.items():
        for section in read(data).sections:
            path = places.get(section.name)
            if path is None:
                if section.new and belongs(section.name):
                    results[name].append(Finding(
                        f"it adds {section.name}, which is not in the project",
                        "put the file into kunit/ or selftests/, or drop it"))
            elif not section.new or section.name in seen:
                results[name].append(Finding(
                    f"it changes {section.name}, which a patch has to add in one piece",
                    "merge the patches and take them with series import"))
            else:
                seen[section.name] = name
                if added(section) != blob(path):
                    results[name].append(Finding(
                        f"{section.name} differs from {path.relative_to(root)}", _REFRESH))
    for place, path in places.items():
        if place not in seen and results:
            results[list(results)[-1]].append(Finding(
                f"no patch up to this one adds {path.relative_to(root)}",
                "commit it to a git branch with the series and type series import"))
    return results


def _letter(files: Mapping[str, bytes]) -> List[Finding]:
    if COVER not in files:
        return [Finding("there is none", "take the set from a git branch with series import")]
    text = files[COVER].decode("utf-8", "replace")
    found = [Finding(f"it still says {each}", "write it")
             for each in cover.PLACEHOLDERS if each in text]
    head = read(files[COVER])
    for line in cover.text_of(text).split("\n"):
        if len(line) > 75 or re.search(r"[ \t]$", line):
            found.append(Finding(f"a line is too long or ends in a space: {line[:30]}",
                                 "mend the line"))
    if not head.header("From") or not head.subject():
        found.append(Finding("it has no From or no Subject", "write it as git does"))
    return found


def _up_to_date(root: Path, name: str, env: Mapping[str, str], where: Path,
                tally: Tally) -> bool:
    """Check that the patches apply one on the other, and that refresh would change nothing."""
    files = sets.load(root, name)
    try:
        fresh = refresh.refreshed(root, name, env, where)
    except GateError as err:
        return tally.judge(name, "applies in order", [Finding(err.what, err.todo)])
    good = True
    for each, data in files.items():
        findings = [] if fresh[each] == data else [Finding("it is not what git would write",
                                                           _REFRESH)]
        good = tally.judge(f"{name}/{each}", "up to date", findings) and good
    return good
