# SPDX-License-Identifier: GPL-2.0
"""What guests get: memory, time, command lines."""

from __future__ import annotations

ACCELERATORS = ("auto", "kvm", "tcg")

# Memory of such a guest in MiB: for itself, and for each CPU.
GUEST_MIB = 512
GUEST_MIB_PER_CPU = 6

# No more of it than this part may be initramfs, which is there twice while it is unpacked.
INITRAMFS_PART = 0.25

# What a guest gets in seconds, and how many more for each CPU.
GUEST_SECONDS = 300
GUEST_SECONDS_PER_CPU = 3

# How long a guest may take to show that KVM works.
PROBE_SECONDS = 20

# More CPUs take x2APIC with interrupt remapping, and from TCG's side this QEMU.
XAPIC_CPUS = 255
X2APIC_QEMU = 9

# Runs the suites and ends the guest.  The kernels are configured not to run
# them by themselves, which newer ones divide into two options.
KUNIT_CMDLINE = ("console=ttyS0 panic=-1 kunit.enable=1 kunit.autorun=1 "
                 "kunit_shutdown=reboot")

# Bounds in seconds, for a loaded machine; no test asserts a time.
KUNIT_BOOT_SECONDS = 300
