# SPDX-License-Identifier: GPL-2.0
"""A hash of all that a tree holds, made anew only for files that changed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Collection, Dict, Iterator, List, Tuple

from gatelib.trees.files import Blob, write_blob

# What a file is known by between two runs: size, times of content and inode in ns.
_Stamp = List[int]


def content_hash(folder: Path, known: Path, leave_out: Collection[str]) -> str:
    """Return 16 hexadecimal digits for the names, modes and bytes of all files below folder.

    known: where the hashes of the files are kept for the next time; if it is
    damaged, all files are read again.
    leave_out: names below folder that do not count.
    """
    before = _load(known)
    now: Dict[str, Tuple[_Stamp, str]] = {}
    whole = hashlib.sha256()
    for name, status in sorted(_files(folder)):
        if name in leave_out:
            continue
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        old = before.get(name)
        digest = old[1] if old and old[0] == stamp else _digest(folder / name, status)
        now[name] = (stamp, digest)
        whole.update(f"{name}\0{stat.S_IMODE(status.st_mode) & 0o100:o}\0{digest}\n"
                     .encode("utf-8", "surrogateescape"))
    if now != before:
        write_blob(known, Blob(json.dumps(now).encode()))
    return whole.hexdigest()[:16]


def _load(known: Path) -> Dict[str, Tuple[_Stamp, str]]:
    try:
        data = json.loads(known.read_bytes())
        return {str(name): (list(stamp), str(digest)) for name, (stamp, digest) in data.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _files(folder: Path) -> Iterator[Tuple[str, os.stat_result]]:
    """Return name below folder and status of every file and symbolic link."""
    todo = [""]
    while todo:
        where = todo.pop()
        with os.scandir(folder / where) as entries:
            for entry in entries:
                name = f"{where}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    todo.append(f"{name}/")
                else:
                    yield name, entry.stat(follow_symlinks=False)


def _digest(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return hashlib.sha256(os.fsencode(os.readlink(path))).hexdigest()
    return hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(status.st_mode) else "-"
