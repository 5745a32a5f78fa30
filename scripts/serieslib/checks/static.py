# SPDX-License-Identifier: GPL-2.0
"""The checks of a whole set that need no kernel tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict, List, Mapping, Set

from gatelib.base.errors import GateError
from serieslib.base.patchfile import read
from serieslib.base.report import Finding, Report
from serieslib.base.tables import COVER, LINE_MAX, SUBJECT_MAX
from serieslib.checks.lint import lint, mangled, numbering, plain
from serieslib.sets import cover, folders, refresh
from serieslib.sets.owned import added, belongs, blob, owned

_REFRESH = "type scripts/series refresh"


def check_set(root: Path, name: str, env: Mapping[str, str], where: Path, report: Report) -> bool:
    """Check the set's files; return whether all is well.

    where: folder for temporary files.
    """
    try:
        files = folders.load(root, name)
    except GateError as err:
        return report.judge(name, "is there", [Finding(err.what, err.todo)])
    patches = folders.patches(files)
    if not patches:
        return report.judge(name, "is there", [Finding("there is no patch in it", "take the set "
                                                      "from a git branch with series import")])
    good = True
    bad = set()	# patches of which enough was said
    for each, data in patches.items():
        for check, findings in lint(data).items():
            if not report.judge(f"{name}/{each}", check, findings):
                bad.add(each)
    for each, findings in numbering(patches).items():
        good = report.judge(f"{name}/{each}", "numbering", findings) and good
    for each, findings in sources(root, patches).items():
        good = report.judge(f"{name}/{each}", "equals kunit/ and selftests/", findings) and good
    good = report.judge(f"{name}/{COVER}", "cover letter", _letter(files)) and good
    return _up_to_date(root, name, env, where, bad, report) and good and not bad


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
    text = files[COVER].decode("utf-8", "surrogateescape")
    head = read(files[COVER])
    found = plain(head, text) or mangled(head, text)
    if not cover.text_of(text):
        found.append(Finding("it says nothing", "write what the series is for"))
    left = re.search(r"\*\*\*.*\*\*\*|\b(TODO|FIXME|XXX)\b", text)
    if left:
        found.append(Finding(f"it still says {left.group(0)}", "write it"))
    if len(head.subject()) > SUBJECT_MAX:
        found.append(Finding(f"the subject has more than {SUBJECT_MAX} characters", "shorten it"))
    for line in cover.text_of(text).split("\n"):
        if len(line) > LINE_MAX or re.search(r"[ \t]$", line):
            found.append(Finding(f"a line is too long or ends in a space: {line[:30]}",
                                 "mend the line"))
    if not head.header("From") or not head.subject():
        found.append(Finding("it has no From or no Subject", "write it as git does"))
    return found


def _up_to_date(root: Path, name: str, env: Mapping[str, str], where: Path, bad: Set[str],
                report: Report) -> bool:
    """Check that the patches apply one on the other, and that refresh would change nothing."""
    files = folders.load(root, name)
    try:
        fresh = refresh.refreshed(root, name, env, where)
    except GateError as err:
        return report.judge(name, "applies in order", [Finding(err.what, err.todo)])
    good = True
    by_git = list(fresh.by_git.items())
    for number, (each, data) in enumerate(files.items(), len(by_git) - len(files)):
        if fresh.files[each] != data:
            findings = [Finding("it is not what git would write", _REFRESH)]
        else:
            findings = [] if each in bad | {COVER} else [
                *_differences(each, data, *by_git[number]),
                *[Finding(line, "mend the test or the patch") for line in fresh.spaces[each]]]
        good = report.judge(f"{name}/{each}", "up to date", findings) and good
    return good


def _differences(name: str, data: bytes, git_name: str, git_data: bytes) -> List[Finding]:
    """Return where a patch is not what git makes of it, hunks aside: those were applied.

    That is how one sees what git drops on the way, like all that follows a
    line of the message which looks like the beginning of a diff.
    """
    ours, gits = read(data), read(git_data)
    found = []
    if name != git_name:
        found.append(f"its name would be {git_name}")
    for what, one, other in (("header", ours.head, gits.head), ("message", ours.body, gits.body),
                             ("diffstat", ours.stat, gits.stat), ("end", ours.tail, gits.tail)):
        if one != other:
            lost = [line for line in one.split("\n") if line not in other.split("\n")]
            found.append(f"git would write another {what}"
                         + (f", without: {lost[0][:50]}" if lost else ""))
    return [Finding(line, "take the set from a git branch with series import") for line in found]
