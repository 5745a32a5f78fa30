# SPDX-License-Identifier: GPL-2.0
"""Guests that run selftests: which accelerator, which command line."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Mapping, NamedTuple, Optional, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.guests import (GUEST_MIB, GUEST_MIB_PER_CPU, GUEST_SECONDS,
                                 GUEST_SECONDS_PER_CPU, INIT_TIMES, PATIENT, PROBE_SECONDS,
                                 RESULTS_BYTES, X2APIC_QEMU, XAPIC_CPUS)
from gatelib.data.tests import Guest, Item
from gatelib.guests import initramfs
from gatelib.guests.boot import Boot, Machine, run_guest
from gatelib.guests.initramfs import Parts
from gatelib.kernels import build

_KVM = Path("/dev/kvm")
_CMDLINE = f"console=ttyS0 panic=-1 maxcpus=2 {PATIENT} trace_buf_size=64k"
_END = "# gate-init: end "
_VERSION = re.compile(r"version (\d+)")


class Logs(NamedTuple):
    """Where a guest wrote what."""
    boot: Boot
    console: Path
    results: Path

    def text(self) -> str:
        """Return what the guest wrote to its results port."""
        if not self.results.exists():
            return ""
        with open(self.results, "rb") as file:
            return file.read(RESULTS_BYTES).decode("utf-8", "backslashreplace")


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
                   cmdline=f"{_CMDLINE} gate.cpus={smp} "
                   f"gate.kernel={parts.kernel} {options}".rstrip())


def memory_mib(smp: int) -> int:
    """Return how much memory a guest with so many CPUs gets."""
    return GUEST_MIB + GUEST_MIB_PER_CPU * smp


class Accelerator:
    """Which accelerator guests get; finds out once whether KVM works."""

    def __init__(self, wanted: str) -> None:
        """wanted: one of tables.ACCELERATORS."""
        self._wanted = wanted
        self._kvm: Optional[bool] = None
        self.chosen = ""	# what choose() said last

    def choose(self, threads: str, parts: Parts, work: Workspace) -> str:
        """Return QEMU's -accel for a guest; threads: for TCG.

        Raises GateError if the user wants KVM and it does not work.
        """
        if self._wanted != "tcg" and self._kvm is None:
            self._kvm = self._try_kvm(parts, work)
        self.chosen = "kvm" if self._kvm else f"tcg,thread={threads}"
        return self.chosen

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
                if _END in proc.tail(serials[1]):
                    return True
        except GateError as err:
            why = err.what
        if self._wanted == "kvm":
            raise GateError(MACHINE, f"KVM does not work here: {why}",
                            "use --accel tcg or auto", log=serials[0], fatal=True, cause="host")
        work.progress.say(f"gate: KVM runs no guest here ({why}); using TCG")
        return False


def run(guest: Guest, smp: int, accel: str, parts: Parts, work: Workspace, stem: Path,
        env: Optional[Mapping[str, str]] = None) -> Logs:
    """Boot a guest and let it run its items; return what it wrote.

    smp: its CPUs.  accel: as QEMU takes it.  stem: logs are named after it.
    env: variables for the tests.
    Raises GateError if it cannot be built, hangs or panics.
    """
    check_kernel(smp, parts)
    console, found, image = (stem.with_name(stem.name + end)
                             for end in ("-console.log", "-results.log", ".cpio"))
    initramfs.pack(parts, guest.items, image, memory_mib(smp), work)
    seconds = GUEST_SECONDS + GUEST_SECONDS_PER_CPU * smp
    words = [f"{key}={value}" for key, value in (env or {}).items()]
    # Init goes by its own clock, which goes on while the host gives it nothing: the bound
    # that counts is run_guest()'s.
    words += [f"gate.timeout={seconds * INIT_TIMES}", run_option(guest.items)]
    boot = run_guest(machine(parts, smp, accel, image, (console, found), " ".join(words)), work,
                     stem.with_name(stem.name + "-qemu.log"), seconds)
    image.unlink()
    return Logs(boot, console, found)


def run_option(items: Sequence[Item]) -> str:
    """Return the option that tells init what to run."""
    return "gate.run=" + ",".join(":".join((item.program, *item.args)) for item in items)
