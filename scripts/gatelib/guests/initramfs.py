# SPDX-License-Identifier: GPL-2.0
"""Selftests built static with the tree's own Makefiles, and packed for a guest."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.guests import INITRAMFS_PART
from gatelib.data.tests import SELFTESTS_DIR, SELFTESTS_MODULE, SELFTESTS_TARGETS, Item
from gatelib.kernels import build
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.patches import Plan
from gatelib.trees.tree import Tree

_FLAVOUR = "x86_64"
_INIT_C = Path("selftests", "guest", "init.c")


class Parts(NamedTuple):
    """What initramfs images are made of."""
    tree: Tree
    installed: Path	# where the selftests are
    init: Path


def carried(plan: Plan, items: Sequence[Item]) -> bool:
    """Return whether the patches of a plan bring selftests along, or find them in the tree."""
    folders = tuple(f"{SELFTESTS_DIR}/{item.program.split('/')[0]}/" for item in items)
    return any(blob is not None and name.startswith(folders) for name, blob in plan.files.items())


def make_parts(tree: Tree, items: Sequence[Item], work: Workspace, log: Path) -> Parts:
    """Build and install the selftests of the tree as it is now, and the guest's init.

    items: what has to be there afterwards.  log: where the output goes.
    Raises GateError if something is missing.
    """
    where = build.folder(tree, _FLAVOUR)
    installed = where / "kselftest" / "kselftest_install"
    log.unlink(missing_ok=True)
    # What an earlier tree had and this one lacks must not be found there.
    shutil.rmtree(installed, ignore_errors=True)
    todo = "see the compiler's last lines above"
    work.must(["make", "-C", str(tree.src), f"O={where}", f"ARCH={_FLAVOUR}",
                *build.compilers(), "headers"], log,
               "the kernel's headers for user space could not be made", todo)
    # muldefs: one of the timers tests has a function of the C library's own.
    work.must(["make", "-C", str(tree.src / SELFTESTS_DIR), f"O={where}", f"ARCH={_FLAVOUR}",
                *build.compilers(), f"-j{work.jobs}", f"TARGETS={' '.join(SELFTESTS_TARGETS)}",
                "LDFLAGS=-static -Wl,-z,muldefs", "FORCE_TARGETS=1", "install"], log,
               "the selftests could not be built", todo)
    for item in items:
        for name in (item.program, *item.files):
            if not (installed / name).exists():
                raise GateError(MACHINE, f"the build installed no selftest {name}",
                                f"see whether {SELFTESTS_DIR} of the tree has it", log=log)
    return Parts(tree, installed, make_init(tree, work, log))


def make_init(tree: Tree, work: Workspace, log: Path) -> Path:
    """Compile the guest's init into the build folder; return it."""
    init = build.folder(tree, _FLAVOUR) / "gate-init"
    work.must(["gcc", "-static", "-O2", "-Wall", "-o", str(init), str(work.root / _INIT_C)],
               log, "the guest's init could not be built", "see the compiler's last lines above")
    return init


def pack(parts: Parts, items: Sequence[Item], image: Path, memory_mib: int, work: Workspace) -> None:
    """Write the initramfs for a guest that runs the items.

    image: the file to write.  memory_mib: what the guest has.
    Raises GateError if that is too little.
    """
    where = build.folder(parts.tree, _FLAVOUR)
    release = (where / "include" / "config" / "kernel.release").read_text().strip()
    files = {"/init": parts.init}
    busybox = shutil.which("busybox")
    if busybox:
        files["/bin/busybox"] = Path(busybox)
    module = where / SELFTESTS_MODULE
    if module.exists():
        files[f"/lib/modules/{release}/kernel/{SELFTESTS_MODULE}"] = module
    for item in items:
        for name in (item.program, *item.files):
            files.update(_below(parts.installed, name))
    mib = sum(path.stat().st_size for path in files.values()) / 2**20
    if mib > memory_mib * INITRAMFS_PART:
        raise GateError(UNUSABLE, f"an initramfs of {mib:.0f} MiB is too much for a guest with "
                        f"{memory_mib} MiB of memory", "build smaller tests, or raise GUEST_MIB "
                        "in scripts/gatelib/data/guests.py")
    listing = where / "gate-initramfs"
    write_blob(listing, Blob(_listing(files).encode()))
    done = proc.capture([str(where / "usr" / "gen_init_cpio"), str(listing)], env=work.env)
    if done.returncode != 0 or not done.stdout:
        raise GateError(MACHINE, "the kernel's gen_init_cpio failed: "
                        + done.stderr.decode("utf-8", "replace"), "look for the reason")
    image.write_bytes(done.stdout)


def _below(installed: Path, name: str) -> Dict[str, Path]:
    """Return name, and all below it where it is a folder, as guest's file -> ours."""
    top = installed / name
    paths = sorted(path for path in top.rglob("*") if path.is_file()) if top.is_dir() else [top]
    return {f"/kselftest/{path.relative_to(installed)}": path for path in paths}


def _listing(files: Dict[str, Path]) -> str:
    """Return the table that gen_init_cpio reads."""
    folders = {str(parent) for name in files for parent in Path(name).parents}
    folders.update(("/dev", "/proc", "/sys", "/tmp", "/bin"))
    lines: List[str] = [f"dir {name} 0755 0 0" for name in sorted(folders - {"/"})]
    for name, path in sorted(files.items()):
        mode = "0755" if os.access(path, os.X_OK) else "0644"
        if len(f"{name}{path}".split()) != 1:
            raise GateError(UNUSABLE, f"the file {path} has a space in its name, which "
                            "gen_init_cpio does not take", "rename it")
        lines.append(f"file {name} {path} {mode} 0 0")
    return "\n".join(lines) + "\n"
