# SPDX-License-Identifier: GPL-2.0
"""Who gets the mails: the tree's own get_maintainer.pl, and people named in tags."""

from __future__ import annotations

import os
import re
from email.header import Header
from email.utils import formataddr, getaddresses, parseaddr
from pathlib import Path
from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.trees.tree import Tree
from serieslib.base.patchfile import Mail
from serieslib.base.tables import TAGS_CC

SCRIPT = "scripts/get_maintainer.pl"
_OPTIONS = ("--nogit", "--nogit-fallback", "--nogit-chief-penguins", "--norolestats")


class People(NamedTuple):
    """Addressees, each "Name <mail>" or a bare address."""
    to: List[str]
    cc: List[str]


def parse(text: str, what: str) -> Tuple[str, str]:
    """Return name and address of "Name <mail>"; raise GateError if it is none."""
    name, mail = parseaddr(text)
    if not (text.isprintable() and re.search(r"\w", name) and len(getaddresses([text])) == 1
            and text.rstrip().endswith(f"<{mail}>")
            and re.fullmatch(r"[^@\s<>]+@[^@\s<>]+", mail) and mail.isascii()):
        raise GateError(UNUSABLE, f"{what} {text!r} is no \"Name <mail>\"", "write it like that")
    return name, mail


def header(person: str) -> str:
    """Return the person as mail headers want it: ASCII, quoted where need be, on one line."""
    name, mail = parseaddr(person)
    if not mail:
        return person
    return formataddr((name, mail)) if name.isascii() else f"{encoded(name)} <{mail}>"


def encoded(text: str) -> str:
    """Return the text as the encoded words of a mail header, on one line."""
    return Header(text, "utf-8").encode().replace("\n ", " ")


def maintainers(tree: Tree, patches: Sequence[Path], work: Workspace, *options: str) -> List[str]:
    """Return what the tree's get_maintainer.pl prints for the patches, in order.

    Raises GateError if the tree has no such script or it fails.
    """
    if not (tree.src / SCRIPT).is_file():
        raise GateError(UNUSABLE, f"{tree.name} has no {SCRIPT}", "choose a complete tree")
    # It may be a script of any language in days to come; today it is Perl.
    done = proc.capture([str(tree.src / SCRIPT), *_OPTIONS, *options,
                         *[os.path.abspath(path) for path in patches]],
                        env=work.env, cwd=tree.src)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip() or "no message"
        raise GateError(MACHINE, f"{SCRIPT} of {tree.name} failed: {said}",
                        "install perl if it is missing")
    return [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]


def people(tree: Tree, patches: Sequence[Path], mails: Iterable[Mail], sender: str,
           work: Workspace) -> People:
    """Return who gets the series, except its sender.

    To: maintainers.  Cc: reviewers, lists, authors, and those in Suggested-by and such tags.
    """
    to = maintainers(tree, patches, work, "--nol", "--nor")
    cc = maintainers(tree, patches, work, "--nom")
    for mail in mails:
        cc.append(mail.header("From"))
        cc += [value for tag, value in mail.tags() if tag in TAGS_CC and "@" in value]
    seen: Dict[str, str] = {parseaddr(sender)[1].lower(): ""}
    kept: Dict[str, List[str]] = {"to": [], "cc": []}
    for where, persons in (("to", to), ("cc", cc)):
        for person in persons:
            key = parseaddr(person)[1].lower()
            if key and key not in seen:
                seen[key] = person
                kept[where].append(person)
    return People(kept["to"], kept["cc"])
