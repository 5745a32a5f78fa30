# SPDX-License-Identifier: GPL-2.0
"""Files of a kernel tree as values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, Dict, NamedTuple, Optional


class Blob(NamedTuple):
    """A file's content and whether it is executable."""
    data: bytes
    executable: bool = False


# File name below the tree -> content, or None where there is no such file.
Files = Dict[str, Optional[Blob]]
# How the files of a tree are looked up.
Lookup = Callable[[str], Optional[Blob]]


def read_blob(path: Path) -> Optional[Blob]:
    """Return the file, or None if there is none."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Blob(data, os.access(path, os.X_OK))


def write_file(path: Path, blob: Optional[Blob]) -> None:
    """Write the file, its folder too; nothing if blob is None."""
    if blob is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(blob.data)
    path.chmod(0o755 if blob.executable else 0o644)


def write_blob(path: Path, blob: Optional[Blob]) -> bool:
    """Make the file what blob says (None: not there), in one step, if it is not so yet.

    Returns whether anything was written.
    """
    if read_blob(path) == blob:
        return False
    if blob is None:
        path.unlink()
        return True
    new = path.with_name(path.name + ".gate-new")
    write_file(new, blob)
    os.replace(new, path)
    return True
