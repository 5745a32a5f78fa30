# SPDX-License-Identifier: GPL-2.0
"""What the tree's own tools say of a patch: checkpatch.pl, kernel-doc, get_maintainer.pl."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import List, NamedTuple, Sequence

from gatelib.base import proc
from gatelib.base.errors import UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.trees.files import Files
from gatelib.trees.tree import Tree
from serieslib.base.git import Git
from serieslib.base.patchfile import read
from serieslib.base.report import Finding, Report
from serieslib.base.tables import ACCEPTED, SPELLING, Accepted
from serieslib.mails.address import SCRIPT
from serieslib.sets.refresh import write_blob_in

CHECKPATCH = "scripts/checkpatch.pl"
KERNEL_DOC = "scripts/kernel-doc"
_SAYS = re.compile(r"^(?:.*?:(\d+): )?(ERROR|WARNING|CHECK):(\w+): (.*)$")
_REST = "THE REST"


class Said(NamedTuple):
    """One thing that checkpatch says."""
    line: str
    type: str
    what: str


def parse(text: str) -> List[Said]:
    """Return what is in the output of checkpatch.pl --terse --show-types."""
    found = [_SAYS.match(line) for line in text.splitlines()]
    return [Said(each.group(1) or "", each.group(3), each.group(4)) for each in found if each]


def checkpatch(tree: Tree, mail: Path, git: Git, label: str, work: Workspace,
               report: Report) -> None:
    """Run the tree's checkpatch.pl --strict on a mail, and judge all that it says.

    git: a repository made of the tree with the series; commits are looked up there.
    """
    script = tree.src / CHECKPATCH
    if not script.is_file():
        raise GateError(UNUSABLE, f"{tree.name} has no {CHECKPATCH}", "choose a complete tree")
    done = proc.capture([str(script), "--strict", "--terse", "--show-types", "--no-summary",
                         "--codespell", *_spelling(), str(mail)], env=git.env, cwd=git.folder)
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    said = parse(output)
    findings = []
    if done.returncode != 0 and not said:
        findings.append(Finding(f"checkpatch.pl failed: {output.strip()[-200:]}",
                                "look for the reason"))
    # It goes on without the files that it takes words and names from.
    findings += [Finding(f"checkpatch.pl cannot look at all: {line}", "install what is missing")
                 for line in output.splitlines() if re.match(r"No .* will be found", line)]
    for each in said:
        row = _accepted(each)
        uncovered = _uncovered(tree, mail, work) if row and row.proof else []
        if row and not uncovered:
            report.accept(label, "checkpatch", f"{each.type} {each.what}", row.reason)
        elif row:
            findings.append(Finding(f"no pattern in MAINTAINERS covers {uncovered[0]}",
                                    "add one to the patch"))
        else:
            where = f"line {each.line} of the mail: " if each.line else ""
            findings.append(Finding(f"{where}{each.type} {each.what}", "mend the patch, or name "
                                    "the reason in the table ACCEPTED"))
    report.judge(label, "checkpatch --strict", findings)


def _spelling() -> List[str]:
    """Return the options for codespell's words, none where another system has them elsewhere."""
    return [f"--codespellfile={SPELLING}"] if Path(SPELLING).is_file() else []


def _accepted(said: Said) -> "Accepted | None":
    return next((row for row in ACCEPTED
                 if row.type == said.type and re.search(row.match, said.what)), None)


def _uncovered(tree: Tree, mail: Path, work: Workspace) -> List[str]:
    """Return the new files of a patch that no entry of MAINTAINERS but the last one covers.

    The tree has to be in a state in which the files are there.
    """
    uncovered = []
    for name in read(mail.read_bytes()).new_files():
        done = proc.capture([str(tree.src / SCRIPT), "--nogit", "--nogit-fallback",
                             "--norolestats", "--noemail", "--subsystem", "-f",
                             name], env=work.env, cwd=tree.src)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        # Lists come along with the titles of entries.
        entries = [line for line in lines if line and "@" not in line and line != _REST]
        if done.returncode != 0 or not entries:
            uncovered.append(name)
    return uncovered


def kernel_doc(tree: Tree, names: Sequence[str], before: Files, after: Files,
               work: Workspace) -> List[Finding]:
    """Return what kernel-doc newly says about the C files in names."""
    found: List[Finding] = []
    for name in sorted(names):
        if name.endswith((".c", ".h")) and after.get(name) is not None:
            more = _documented(tree, name, after, work) - _documented(tree, name, before, work)
            found += [Finding(f"kernel-doc says of {name}: {line}", "mend the comment")
                      for line in more.elements()]
    return found


def _documented(tree: Tree, name: str, files: Files, work: Workspace) -> "Counter[str]":
    """Return what kernel-doc says about one file, without line numbers."""
    script = tree.src / KERNEL_DOC
    blob = files.get(name)
    if blob is None:
        return Counter()
    if not script.is_file():
        raise GateError(UNUSABLE, f"{tree.name} has no {KERNEL_DOC}", "choose a complete tree")
    with tempfile.TemporaryDirectory(dir=work.cache / "tmp", prefix="doc-") as temp:
        write_blob_in(Path(temp), name, blob)
        done = proc.capture([str(script), "-none", name], env=dict(work.env,
                            srctree=str(tree.src)), cwd=Path(temp))
    lines = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
    if done.returncode != 0 and not any("warning" in line or "error" in line for line in lines):
        raise GateError(UNUSABLE, f"{KERNEL_DOC} failed on {name}: {' '.join(lines)[-200:]}",
                        "install what it needs")
    return Counter(re.sub(r":\d+:", ":", line) for line in lines
                   if re.search(r"warning|error", line, re.I))
