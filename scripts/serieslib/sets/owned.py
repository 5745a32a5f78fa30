# SPDX-License-Identifier: GPL-2.0
"""The files of kunit/ and selftests/, and where the kernel tree has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Dict

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.trees.files import Blob, read_blob
from serieslib.base.patchfile import Section
from serieslib.base.tables import KUNIT, OWNED_PLACES, SELFTESTS, SELFTESTS_OURS


def owned(root: Path) -> Dict[str, Path]:
    """Return name in the kernel tree -> the project's file that goes there.

    root: the project.  Raises GateError if a file of the table is missing.
    """
    found = {place: root / name for name, place in KUNIT.items()}
    absent = [str(path) for path in found.values() if not path.is_file()]
    if absent:
        raise GateError(UNUSABLE, f"{absent[0]} is missing", "check out the whole project")
    ours, theirs = SELFTESTS
    for path in sorted((root / ours).rglob("*")):
        name = path.relative_to(root / ours).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        if path.is_file() and not hidden and not name.startswith(SELFTESTS_OURS):
            found[theirs + name] = path
    return found


def belongs(name: str) -> bool:
    """Return whether a new file of this name has to come from the project's copies."""
    return any(re.fullmatch(place, name) for place in OWNED_PLACES)


def blob(path: Path) -> Blob:
    """Return the project's file."""
    found = read_blob(path)
    if found is None:
        raise GateError(UNUSABLE, f"cannot read {path}", "check out the whole project")
    return found


def added(section: Section) -> Blob:
    """Return the file that a section for a new file adds."""
    lines = [line for hunk in section.hunks for line in hunk.lines]
    text = "".join(line[1:] + "\n" for line in lines if line.startswith("+"))
    if lines and lines[-1].startswith("\\"):
        text = text[:-1]
    return Blob(text.encode("utf-8", "surrogateescape"), "\nnew file mode 100755\n" in section.text)
