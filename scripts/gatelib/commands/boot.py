# SPDX-License-Identifier: GPL-2.0
"""gate boot: one kernel with its console on the user's terminal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from gatelib.base import proc
from gatelib.base.errors import HOLDS, blamed
from gatelib.base.workspace import Workspace
from gatelib.data.tests import GUESTS
from gatelib.guests import initramfs, selftests
from gatelib.guests.boot import Machine
from gatelib.kernels import build, identity
from gatelib.results import kunit
from gatelib.trees.states import State
from gatelib.trees.tree import Tree


class Prepared(NamedTuple):
    """A guest that is ready to be started."""
    machine: Machine
    ident: str		# the build that is to run
    console: Path	# where QEMU keeps what the terminal shows


def prepare(tree: Tree, state: State, smp: int, shell: bool,
            accelerator: selftests.Accelerator, work: Workspace) -> Prepared:
    """Build the tree in a state, and all that the guest needs, into work.out.

    shell: the guest gives a shell; else it runs the selftests, and says on
    the console what comes out.  The guest does not touch the cache, so that
    another gate can work there meanwhile.
    """
    name = f"{tree.name} {state.name} x86_64"
    stem = f"{tree.folder.name}-{state.name}-boot"
    tree.switch(state.files)
    ident = identity.kernel_id(tree, state.files, "x86_64", work)
    with work.progress.stage(f"{name}: build"):
        build.build(tree, "x86_64", work, work.out / f"{stem}-build.log", ident)
    items = [item for guest in GUESTS for item in guest.items]
    with work.progress.stage(f"{name}: build selftests"):
        parts = initramfs.make_parts(tree, items, work, work.out / f"{stem}-selftests.log", ident,
                                     identity.tests_id(tree, state.files, work))
    selftests.check_kernel(smp, parts)
    accel = accelerator.choose("single", parts, work)
    image = work.out / f"{stem}.cpio"
    initramfs.pack(parts, items, image, selftests.memory_mib(smp), work)
    options = "gate.shell" if shell else \
        f"gate.results=ttyS0 {selftests.run_option(items)}"
    machine = selftests.machine(parts, smp, accel, image, (), options)
    kernel = work.out / f"{stem}-bzImage"
    shutil.copyfile(machine.kernel, kernel)
    results, console = work.out / f"{stem}-results.log", work.out / f"{stem}-console.log"
    console.unlink(missing_ok=True)
    # QEMU's mon:stdio, with a log.
    extra = ("-chardev", f"stdio,id=terminal,mux=on,signal=off,logfile={console}",
             "-serial", "chardev:terminal", "-mon", "chardev=terminal,mode=readline",
             "-serial", f"file:{results}")
    return Prepared(machine._replace(kernel=kernel, extra=extra), ident, console)


def run(prepared: Prepared, work: Workspace) -> int:
    """Run the guest on the user's terminal; return the gate's exit status.

    Raises GateError if QEMU fails, or another kernel than the one meant was running.
    """
    machine = prepared.machine
    work.progress.say(f"gate: {machine.smp} CPUs, build #{prepared.ident}; the guest ends when it "
                      "powers off, or with Ctrl-A X")
    try:
        status = proc.foreground(machine.argv(), env=work.env)
    finally:
        for path in (machine.kernel, machine.initrd):
            if path is not None:
                Path(path).unlink(missing_ok=True)
    if status != 0:
        raise blamed("host", f"QEMU ended with status {status}", "see its last lines above")
    wrong = identity.complaint(identity.running(kunit.console_lines(prepared.console)),
                               prepared.ident)
    if wrong:
        raise blamed("harness", wrong, "", log=prepared.console)
    return HOLDS
