# SPDX-License-Identifier: GPL-2.0
"""Guests that run selftests: which accelerator, which command line, what came out."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.guests import (GUEST_MIB, GUEST_MIB_PER_CPU, GUEST_SECONDS,
                                 GUEST_SECONDS_PER_CPU, PROBE_SECONDS, X2APIC_QEMU, XAPIC_CPUS)
from gatelib.data.tests import Guest, Item
from gatelib.guests import initramfs
from gatelib.guests.boot import Machine, run_guest
from gatelib.guests.initramfs import Parts
from gatelib.kernels import build
from gatelib.results import ktap, kunit
from gatelib.trees.patches import UPSTREAM

_KVM = Path("/dev/kvm")
# A virtual CPU that a busy host lets stand still between two clock readings
# looks like a bad TSC.
_CMDLINE = "console=ttyS0 panic=-1 maxcpus=2 tsc=reliable trace_buf_size=64k"
_VERSION = re.compile(r"version (\d+)")


class Outcome(NamedTuple):
    """What one guest said."""
    reading: ktap.Reading
    problems: List[Tuple[str, Path]]	# each with the log that shows it
    results: Path
    seconds: float


def check_smp(smp: int, work: Workspace) -> None:
    """Raise GateError if QEMU cannot give a guest so many CPUs."""
    if smp <= XAPIC_CPUS:
        return
    said = proc.capture(["qemu-system-x86_64", "--version"], env=work.env).stdout
    found = _VERSION.search(said.decode("utf-8", "replace"))
    if found is None or int(found.group(1)) < X2APIC_QEMU:
        has = f"this is QEMU {found.group(1)}" if found else "its version is unknown"
        raise GateError(UNUSABLE, f"--smp {smp}: more than {XAPIC_CPUS} CPUs take QEMU "
                        f"{X2APIC_QEMU} or later, and {has}", "give a smaller --smp")


def check_kernel(smp: int, parts: Parts) -> None:
    """Raise GateError if the kernel cannot have so many CPUs."""
    config = build.folder(parts.tree, "x86_64") / ".config"
    most = build.options(config.read_text("utf-8", "replace")).get("CONFIG_NR_CPUS", "")
    if most.isdigit() and smp > int(most):
        raise GateError(UNUSABLE, f"--smp {smp}: the kernel is built for {most} CPUs",
                        "give a smaller --smp, or raise CONFIG_NR_CPUS in kunit/x86_64.config")


def machine(parts: Parts, smp: int, accel: str, image: Path, serials: Tuple[Path, ...],
            options: str) -> Machine:
    """Return a guest with the recipe for many CPUs: two at boot, init brings up the rest.

    accel: as QEMU takes it.  image: its initramfs.  options: for init.
    """
    return Machine(kernel=build.image(parts.tree, "x86_64"), smp=smp, serials=serials, accel=accel,
                   cpu="host,-hypervisor" if accel == "kvm" else Machine._field_defaults["cpu"],
                   memory_mib=memory_mib(smp), initrd=image,
                   cmdline=f"{_CMDLINE} gate.cpus={smp} {options}".rstrip())


def memory_mib(smp: int) -> int:
    """Return how much memory a guest with so many CPUs gets."""
    return GUEST_MIB + GUEST_MIB_PER_CPU * smp


class Accelerator:
    """Which accelerator guests get; finds out once whether KVM works."""

    def __init__(self, wanted: str) -> None:
        """wanted: one of tables.ACCELERATORS."""
        self._wanted = wanted
        self._kvm: Optional[bool] = None

    def choose(self, threads: str, parts: Parts, work: Workspace) -> str:
        """Return QEMU's -accel for a guest; threads: for TCG.

        Raises GateError if the user wants KVM and it does not work.
        """
        if self._wanted != "tcg" and self._kvm is None:
            self._kvm = self._try_kvm(parts, work)
        return "kvm" if self._kvm else f"tcg,thread={threads}"

    def _try_kvm(self, parts: Parts, work: Workspace) -> bool:
        """Return whether a guest came to its end with KVM: that /dev/kvm opens says little."""
        if self._wanted == "auto" and not os.access(_KVM, os.R_OK | os.W_OK):
            return False
        image = work.out / "probe.cpio"
        serials = (work.out / "probe-console.log", work.out / "probe-results.log")
        initramfs.pack(parts, (), image, memory_mib(2), work)
        why = "its results are incomplete"
        try:
            with work.progress.stage("boot a guest to see whether KVM works"):
                run_guest(machine(parts, 2, "kvm", image, serials, ""), work,
                          work.out / "probe-qemu.log", PROBE_SECONDS)
                if not ktap.read(_text(serials[1]), ()).problems:
                    return True
        except GateError as err:
            why = err.what
        if self._wanted == "kvm":
            raise GateError(MACHINE, f"KVM does not work here: {why}",
                            "use --accel tcg or auto", log=serials[0], fatal=True)
        work.progress.say(f"gate: KVM runs no guest here ({why}); using TCG")
        return False


def _text(path: Path) -> str:
    return path.read_text("utf-8", "backslashreplace") if path.exists() else ""


def run(guest: Guest, smp: int, accel: str, parts: Parts, present: Mapping[str, str],
        work: Workspace, stem: Path, env: Optional[Mapping[str, str]] = None) -> Outcome:
    """Boot a guest, let it run its items, read what it says.

    smp: its CPUs.  accel: as QEMU takes it.  present: fix id -> ABSENT, OURS
    or UPSTREAM in this kernel.  stem: logs are named after it.
    env: more variables for the tests.
    Raises GateError if it cannot be built, hangs or panics.
    """
    check_kernel(smp, parts)
    console, found, image = (stem.with_name(stem.name + end)
                             for end in ("-console.log", "-results.log", ".cpio"))
    initramfs.pack(parts, guest.items, image, memory_mib(smp), work)
    seconds = GUEST_SECONDS + GUEST_SECONDS_PER_CPU * smp
    words = [f"{key}={value}" for key, value in {**variables(present), **(env or {})}.items()]
    words += [f"gate.timeout={seconds * 3 // 4}", run_option(guest.items)]
    took = run_guest(machine(parts, smp, accel, image, (console, found), " ".join(words)), work,
                     stem.with_name(stem.name + "-qemu.log"), seconds)
    reading = ktap.read(_text(found), guest.items)
    bad = kunit.bad_lines(kunit.console_lines(console))
    problems = [(f"{guest.name} guest: console: {line}", console) for line in kunit.first(bad, 3)]
    problems += [(f"{guest.name} guest: {line}", found)
                 for line in kunit.first(reading.problems, 6)]
    image.unlink()
    return Outcome(reading, problems, found, took)


def variables(present: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment of the tests in a kernel; present: fix id -> what it has."""
    if present["tick"] == UPSTREAM:
        return {}
    # No allowance for an atomic gate: this kernel is not to have one.
    return {"JIFFIES_STAMPEDE_STRICT": "1"}


def run_option(items: Sequence[Item]) -> str:
    """Return the option that tells init what to run."""
    return "gate.run=" + ",".join(":".join((item.program, *item.args)) for item in items)
