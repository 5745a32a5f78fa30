# SPDX-License-Identifier: GPL-2.0
"""The folders of patches/: reading and writing one set."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, List

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.trees import PATCH_SETS, REVERSE_DIR
from gatelib.trees.files import Blob, write_blob
from serieslib.base.tables import COVER


def names(root: Path) -> List[str]:
    """Return the names of the sets that the project has."""
    return [name for name in PATCH_SETS if any((root / "patches" / name).glob("[0-9]*.patch"))]


def load(root: Path, name: str) -> Dict[str, bytes]:
    """Return file name -> content of a set, with its cover letter if it has one.

    Raises GateError if there is no such set.
    """
    folder = root / "patches" / name
    files = {path.name: path.read_bytes() for path in sorted(folder.glob("[0-9]*.patch"))}
    if not files:
        raise GateError(UNUSABLE, f"there is no set {name}",
                        f"the sets are {' '.join(names(root)) or 'none'}")
    return files


def strangers(root: Path) -> List[str]:
    """Return what lies in patches/ and nobody looks at, as paths below it."""
    found = []
    for folder in sorted((root / "patches").iterdir()):
        if folder.name not in (*PATCH_SETS, REVERSE_DIR) or not folder.is_dir():
            found.append(folder.name)
        elif folder.name != REVERSE_DIR:
            found += [f"{folder.name}/{path.name}" for path in sorted(folder.iterdir())
                      if not re.fullmatch(r"v[0-9]+" if path.is_dir() else r"[0-9].*\.patch",
                                          path.name)]
    return found


def patches(files: Dict[str, bytes]) -> Dict[str, bytes]:
    """Return the files of a set without its cover letter."""
    return {name: data for name, data in files.items() if name != COVER}


def store(root: Path, name: str, files: Dict[str, bytes]) -> List[str]:
    """Make the set what files says; return the names of the files that changed.

    New files come before old ones go, so that an end in between loses nothing.
    """
    folder = root / "patches" / name
    folder.mkdir(parents=True, exist_ok=True)
    changed = [each for each, data in files.items() if write_blob(folder / each, Blob(data))]
    for path in sorted(folder.glob("[0-9]*.patch")):
        if path.name not in files:
            os.unlink(path)
            changed.append(path.name)
    return sorted(changed)
