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
# How many times as much its init gives each program.
INIT_TIMES = 5

# How long a guest may take to show that KVM works.
PROBE_SECONDS = 20

# No guest has more to say: what is behind that is cut off, which fails.
RESULTS_BYTES = 16 << 20

# More CPUs take x2APIC with interrupt remapping, and from TCG's side this QEMU.
XAPIC_CPUS = 255
X2APIC_QEMU = 9

# A virtual CPU that a busy host lets stand still between two clock readings
# looks like a bad TSC, or at boot like a timer that does not work, and for
# longer like a stalled CPU. A CPU that really stalls is found by the bounds
# below.
PATIENT = "tsc=reliable no_timer_check rcupdate.rcu_cpu_stall_timeout=300"

# Runs the suites and ends the guest.  The kernels are configured not to run
# them by themselves, which newer ones divide into two options.
KUNIT_CMDLINE = (f"console=ttyS0 panic=-1 {PATIENT} kunit.enable=1 kunit.autorun=1 "
                 "kunit_shutdown=reboot")

# Bounds in seconds, which a busy host makes longer; no test asserts a time.
KUNIT_BOOT_SECONDS = 300
