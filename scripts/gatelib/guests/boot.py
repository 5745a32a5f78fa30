# SPDX-License-Identifier: GPL-2.0
"""From a kernel to a console log: UML through kunit.py, x86_64 in QEMU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.errors import UNUSABLE, GateError, blamed
from gatelib.base.load import Usage
from gatelib.base.workspace import Workspace
from gatelib.data.console import CONSOLE_DEAD
from gatelib.data.guests import KUNIT_BOOT_SECONDS, KUNIT_CMDLINE, XAPIC_CPUS
from gatelib.kernels import build
from gatelib.trees.tree import Tree

_DEAD = re.compile("|".join(pattern.replace("^", "") for pattern in CONSOLE_DEAD))
_LAST_WORDS = 3.0	# seconds that a guest gets to print its call trace after a panic
_TOO_MANY = re.compile(r"exceeds max CPUs|exceeds the maximum|Invalid SMP CPUs|Number of SMP CPUs")


class Machine(NamedTuple):
    """A QEMU guest."""
    kernel: Path
    cmdline: str
    smp: int
    serials: Sequence[Path]		# a log each; the first is the console
    accel: str = "tcg,thread=multi"
    # A constant TSC makes CPUs come up fast; without the hypervisor bit the
    # kernel has real queued spinlocks.
    cpu: str = "Nehalem,-hypervisor"
    memory_mib: int = 1024
    initrd: Optional[Path] = None
    extra: Tuple[str, ...] = ()

    def argv(self) -> List[str]:
        """Return the command that runs it."""
        board, cpu, iommu = "q35", self.cpu, []
        if self.smp > XAPIC_CPUS:
            # Interrupts reach the others only with x2APIC and remapping.
            board, cpu = f"{board},kernel-irqchip=split", f"{cpu},+x2apic"
            iommu = ["-device", "intel-iommu,intremap=on,eim=on"]
        argv = ["qemu-system-x86_64", "-M", board, "-accel", self.accel, "-cpu", cpu, *iommu,
                "-smp", str(self.smp), "-m", f"{self.memory_mib}M", "-nodefaults",
                "-display", "none", "-no-reboot", "-kernel", str(self.kernel),
                "-append", self.cmdline]
        if self.initrd is not None:
            argv += ["-initrd", str(self.initrd)]
        for path in self.serials:
            argv += ["-serial", f"file:{path}"]
        return [*argv, *self.extra]


class Watch:
    """Looks at what a console adds, and stops a guest that said it is dead."""

    def __init__(self, console: Path) -> None:
        self._console = console
        self._seen = 0
        self._rest = ""
        self._since: Optional[float] = None
        self.panic = ""		# the line that said so

    def __call__(self, seconds: float) -> bool:
        """Return whether the guest, up for that many seconds, is to be stopped."""
        try:
            with open(self._console, "rb") as file:
                file.seek(self._seen)
                new = file.read()
        except OSError:
            new = b""
        self._seen += len(new)
        lines = (self._rest + new.decode("utf-8", "replace")).split("\n")
        self._rest = lines.pop()
        for line in lines:
            if not self.panic and _DEAD.search(line):
                self.panic = proc.printable(line.strip())
                self._since = seconds
        return self._since is not None and seconds - self._since > _LAST_WORDS


class Boot(NamedTuple):
    """One boot that came to its end: what it took, and the command that did it."""
    seconds: float
    usage: Usage
    argv: Sequence[str]


def run_guest(machine: Machine, work: Workspace, log: Path, seconds: float) -> Boot:
    """Run the guest until it ends; its serial ports fill machine.serials.

    log: for QEMU's own output.  seconds: after which it is taken to hang, not
    counting those that the host took from it.
    Raises GateError if it panics or hangs, or if QEMU does not run it.
    """
    console = machine.serials[0]
    for path in (log, *machine.serials):
        path.unlink(missing_ok=True)
    watch = Watch(console)
    done = proc.run(machine.argv(), log=log, env=work.env, timeout=seconds,
                    tick=work.progress.tick, watch=watch)
    watch(done.seconds)
    judge_end(done, watch, console, seconds)
    if done.status != 0:
        said = proc.tail(log, 1)
        if _TOO_MANY.search(said):
            raise GateError(UNUSABLE, f"QEMU cannot give the guest {machine.smp} CPUs: {said}",
                            "give a smaller --smp", log=log)
        raise blamed("host", f"QEMU ended with status {done.status}: {said}",
                     "see whether QEMU works here", log=log, tail=proc.tail(console))
    return Boot(done.seconds, done.usage, machine.argv())


def judge_end(done: proc.Done, watch: Watch, console: Path, seconds: float) -> None:
    """Raise GateError if a guest, or UML, panicked or did not end in time.

    A guest that had its time, or slept through it with nobody in its way,
    hangs; one that did not get it is the host's fault.
    """
    if watch.panic:
        raise blamed("panic", f"guest panic: {watch.panic}", "see the end of its console above",
                     log=console, tail=proc.tail(console))
    if done.timed_out and done.usage.fair < seconds:
        raise blamed("host", f"the host gave the guest {done.usage.cpu:.0f} s of CPU time in "
                     f"{done.seconds:.0f} s: starved or stopped",
                     "try again when the machine is less busy", log=console)
    if done.timed_out:
        raise blamed("hang", f"guest hang: it did not end within {seconds:.0f} s",
                     "see the end of its console above", log=console, tail=proc.tail(console))


def kunit_x86_64(tree: Tree, smp: int, work: Workspace, console: Path) -> Boot:
    """Boot the KUnit kernel in QEMU with smp CPUs, its console going to a file."""
    machine = Machine(kernel=build.image(tree, "x86_64"), smp=smp, serials=[console],
                      cmdline=KUNIT_CMDLINE)
    return run_guest(machine, work, console.with_suffix(".qemu.log"), KUNIT_BOOT_SECONDS)


def kunit_um(tree: Tree, work: Workspace, console: Path) -> Boot:
    """Boot the KUnit kernel as a UML process, its console going to a file."""
    console.unlink(missing_ok=True)
    watch = Watch(console)
    env = dict(work.env)
    # UML wants a tmpfs for its memory, and finds one itself.
    del env["TMPDIR"]
    # kunit.py's own bound is by the wall clock, so it must not be what ends a starved kernel.
    argv = [str(tree.src / "tools" / "testing" / "kunit" / "kunit.py"), "exec",
            f"--build_dir={build.folder(tree, 'um')}", "--raw_output=all",
            f"--timeout={100 * KUNIT_BOOT_SECONDS}"]
    done = proc.run(argv, log=console, env=env, cwd=tree.src, timeout=KUNIT_BOOT_SECONDS,
                    tick=work.progress.tick, watch=watch)
    watch(done.seconds)
    judge_end(done, watch, console, KUNIT_BOOT_SECONDS)
    if done.status != 0:
        raise blamed("harness", f"kunit.py could not run the kernel (status {done.status})",
                     "see the end of its output above", log=console, tail=proc.tail(console))
    return Boot(done.seconds, done.usage, argv)
