# SPDX-License-Identifier: GPL-2.0
"""gate boot: one kernel with its console on the user's terminal."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import List

from . import build, guests, initramfs, proc
from .bench import Bench
from .boot import Machine
from .errors import HOLDS, MACHINE, GateError
from .patches import Plan
from .tables import GUESTS
from .trees import Tree


def prepare(tree: Tree, plan: Plan, state: str, smp: int, shell: bool,
            accelerator: guests.Accelerator, bench: Bench) -> Machine:
    """Build the tree in a state, and all that the guest needs, into bench.out.

    shell: the guest gives a shell; else it runs the selftests, and says on
    the console what comes out.  The guest does not touch the cache, so that
    another gate can work there meanwhile.
    """
    name = f"{tree.name} {state} x86_64"
    stem = f"{tree.folder.name}-{state}-boot"
    tree.switch(plan.files)
    with bench.progress.stage(f"{name}: build"):
        build.build(tree, "x86_64", bench, bench.out / f"{stem}-build.log")
    items = [item for guest in GUESTS for item in guest.items]
    with bench.progress.stage(f"{name}: build selftests"):
        parts = initramfs.make_parts(tree, items, bench, bench.out / f"{stem}-selftests.log")
    guests.check_kernel(smp, parts)
    accel = accelerator.choose("single", parts, bench)
    image = bench.out / f"{stem}.cpio"
    initramfs.pack(parts, items, image, guests.memory_mib(smp), bench)
    options: List[str] = [f"{key}={value}" for key, value in
                          guests.variables(plan.present).items()]
    if shell:
        options.append("gate.shell")
    else:
        options += ["gate.results=ttyS0", guests.run_option(items)]
    machine = guests.machine(parts, smp, accel, image, (), " ".join(options))
    kernel = bench.out / f"{stem}-bzImage"
    shutil.copyfile(machine.kernel, kernel)
    results = bench.out / f"{stem}-results.log"
    return machine._replace(kernel=kernel, extra=("-serial", "mon:stdio",
                                                  "-serial", f"file:{results}"))


def run(machine: Machine, bench: Bench) -> int:
    """Run the guest on the user's terminal; return the gate's exit status.

    Raises GateError if QEMU fails.
    """
    bench.progress.say(f"gate: {machine.smp} CPUs; the guest ends when it powers off, "
                       "or with Ctrl-A X")
    try:
        status = proc.foreground(machine.argv(), env=bench.env)
    finally:
        for path in (machine.kernel, machine.initrd):
            if path is not None:
                Path(path).unlink(missing_ok=True)
    if status != 0:
        raise GateError(MACHINE, f"QEMU ended with status {status}", "see its last lines above")
    return HOLDS
