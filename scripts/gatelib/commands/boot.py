# SPDX-License-Identifier: GPL-2.0
"""gate boot: one kernel with its console on the user's terminal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import List

from gatelib.base import proc
from gatelib.base.errors import HOLDS, MACHINE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.tests import GUESTS
from gatelib.guests import initramfs, selftests
from gatelib.guests.boot import Machine
from gatelib.kernels import build
from gatelib.trees.patches import Plan
from gatelib.trees.tree import Tree


def prepare(tree: Tree, plan: Plan, state: str, smp: int, shell: bool,
            accelerator: selftests.Accelerator, work: Workspace) -> Machine:
    """Build the tree in a state, and all that the guest needs, into work.out.

    shell: the guest gives a shell; else it runs the selftests, and says on
    the console what comes out.  The guest does not touch the cache, so that
    another gate can work there meanwhile.
    """
    name = f"{tree.name} {state} x86_64"
    stem = f"{tree.folder.name}-{state}-boot"
    tree.switch(plan.files)
    with work.progress.stage(f"{name}: build"):
        build.build(tree, "x86_64", work, work.out / f"{stem}-build.log")
    items = [item for guest in GUESTS for item in guest.items]
    with work.progress.stage(f"{name}: build selftests"):
        parts = initramfs.make_parts(tree, items, work, work.out / f"{stem}-selftests.log")
    selftests.check_kernel(smp, parts)
    accel = accelerator.choose("single", parts, work)
    image = work.out / f"{stem}.cpio"
    initramfs.pack(parts, items, image, selftests.memory_mib(smp), work)
    options: List[str] = [f"{key}={value}" for key, value in
                          selftests.variables(plan.present).items()]
    if shell:
        options.append("gate.shell")
    else:
        options += ["gate.results=ttyS0", selftests.run_option(items)]
    machine = selftests.machine(parts, smp, accel, image, (), " ".join(options))
    kernel = work.out / f"{stem}-bzImage"
    shutil.copyfile(machine.kernel, kernel)
    results = work.out / f"{stem}-results.log"
    return machine._replace(kernel=kernel, extra=("-serial", "mon:stdio",
                                                  "-serial", f"file:{results}"))


def run(machine: Machine, work: Workspace) -> int:
    """Run the guest on the user's terminal; return the gate's exit status.

    Raises GateError if QEMU fails.
    """
    work.progress.say(f"gate: {machine.smp} CPUs; the guest ends when it powers off, "
                       "or with Ctrl-A X")
    try:
        status = proc.foreground(machine.argv(), env=work.env)
    finally:
        for path in (machine.kernel, machine.initrd):
            if path is not None:
                Path(path).unlink(missing_ok=True)
    if status != 0:
        raise GateError(MACHINE, f"QEMU ended with status {status}", "see its last lines above")
    return HOLDS
