# SPDX-License-Identifier: GPL-2.0
"""Selftests built static with the tree's own Makefiles, and packed for a guest."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError, blamed
from gatelib.base.workspace import Workspace
from gatelib.data.guests import INITRAMFS_PART
from gatelib.data.tests import SELFTESTS_DIR, SELFTESTS_MODULE, SELFTESTS_TARGETS, PROGRAMS, Item
from gatelib.kernels import build, identity
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.tree import Tree

_FLAVOUR = "x86_64"
_INIT = Path("selftests", "guest")


class Parts(NamedTuple):
    """What initramfs images are made of."""
    tree: Tree
    installed: Path	# where the selftests are
    init: Path
    kernel: str		# the builds that are meant: of kernel and module,
    tests: str		# and of the programs


def programs(items: Sequence[Item]) -> List[str]:
    """Return the names of the compiled programs among what the items need."""
    return [name for item in items for name in (item.program, *item.files) if name in PROGRAMS]


def make_parts(tree: Tree, items: Sequence[Item], work: Workspace, log: Path, kernel: str = "",
               tests: str = "") -> Parts:
    """Build and install the selftests of the tree as it is now, and the guest's init.

    items: what has to be there afterwards.  log: where the output goes.
    kernel, tests: the builds that are meant; each program is linked anew
    unless it is of that build.
    Raises GateError if something is missing.
    """
    where = build.folder(tree, _FLAVOUR)
    installed = where / "kselftest" / "kselftest_install"
    log.unlink(missing_ok=True)
    # What an earlier tree had and this one lacks must not be found there.
    shutil.rmtree(installed, ignore_errors=True)
    _drop_others(where / "kselftest", programs(items), tests, work)
    work.must(["make", "-C", str(tree.src), f"O={where}", f"ARCH={_FLAVOUR}", "headers"], log,
              "the kernel's headers for user space could not be made",
              "see the compiler's last lines above", cause="build")
    # muldefs: one of the timers tests has a function of the C library's own.
    flags = "-static -Wl,-z,muldefs" + (f" -Wl,--build-id=0x{tests}" if tests else "")
    work.must(["make", "-C", str(tree.src / SELFTESTS_DIR), f"O={where}", f"ARCH={_FLAVOUR}",
               f"-j{work.jobs}", f"TARGETS={' '.join(SELFTESTS_TARGETS)}", f"LDFLAGS={flags}",
               "FORCE_TARGETS=1", "install"], log, "the selftests could not be built",
              "see the compiler's last lines above", cause="selftest-build")
    for item in items:
        for name in (item.program, *item.files):
            if not (installed / name).exists():
                raise blamed("selftest-build", f"the build installed no selftest {name}",
                             f"see whether {SELFTESTS_DIR} of the tree has it", log=log)
    return Parts(tree, installed, make_init(tree, work, log), kernel, tests)


def _drop_others(built: Path, names: Sequence[str], tests: str, work: Workspace) -> None:
    """Remove programs of other builds: their Makefiles look at the source's time alone."""
    for name in names:
        path = built / name
        if path.exists() and not identity.is_of(path, tests, work.env):
            path.unlink()


def make_init(tree: Tree, work: Workspace, log: Path) -> Path:
    """Compile the guest's init into the build folder; return it."""
    init = build.folder(tree, _FLAVOUR) / "gate-init"
    init.unlink(missing_ok=True)
    sources = sorted(str(path) for path in (work.root / _INIT).glob("*.c"))
    work.must(["gcc", "-static", "-O2", "-Wall", "-o", str(init), *sources], log,
              "the guest's init could not be built", "see the compiler's last lines above")
    return init


def pack(parts: Parts, items: Sequence[Item], image: Path, memory_mib: int,
         work: Workspace) -> None:
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
        identity.check_elf(module, parts.kernel, work.env)
        files[f"/lib/modules/{release}/kernel/{SELFTESTS_MODULE}"] = module
    for item in items:
        for name in (item.program, *item.files):
            files.update(_below(parts.installed, name))
    mib = sum(path.stat().st_size for path in files.values()) / 2**20
    if mib > memory_mib * INITRAMFS_PART:
        raise GateError(UNUSABLE, f"an initramfs of {mib:.0f} MiB is too much for a guest with "
                        f"{memory_mib} MiB of memory", "build smaller tests, or raise GUEST_MIB "
                        "in scripts/gatelib/data/guests.py")
    for name in programs(items):
        identity.check_elf(parts.installed / name, parts.tests, work.env)
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
