# SPDX-License-Identifier: GPL-2.0
"""What the made-up compiler does: a kernel, or a test, is the text of its sources."""

import os
import sys
import time
from pathlib import Path

FAKE = os.environ.get("GATE_FAKE", "")


def build(src: Path, image: Path) -> None:
    """Build the tree src, or fail as GATE_FAKE says."""
    if FAKE == "build-error":
        print("kernel/time/tick-sched.c:7:1: error: expected made-up before thing")
        sys.exit("make: *** [Makefile:1: kernel] Error 2")
    if FAKE == "build-no-space":
        print("cc1: fatal error: cannot write: No space left on device")
        sys.exit("make: *** [Makefile:1: kernel] Error 2")
    if FAKE == "build-slow":
        Path(os.environ["GATE_TEST_PID"]).write_text(str(os.getpid()))
        time.sleep(60)
    if FAKE == "build-nothing":
        return
    image.parent.mkdir(parents=True, exist_ok=True)
    if FAKE == "stale-image" and image.exists():
        return
    image.write_text(f"#{os.environ['KBUILD_BUILD_VERSION']}\n" + "".join((src / name).read_text() for name in
                             ("kernel/trace/trace_hwlat.c", "kernel/time/tick-sched.c")))


def tools(out: Path, ident: str) -> None:
    """Make what a build leaves behind that the gate uses; ident: build ID of the module."""
    for name in ("usr/gen_init_cpio", "include/config/kernel.release", "lib/test_lockup.ko"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / "include/config/kernel.release").write_text("6.12.7-made-up\n")
    if not (FAKE == "stale-module" and (out / "lib/test_lockup.ko").exists()):
        (out / "lib/test_lockup.ko").write_text(f"module\nBuild ID: {ident}\n")
    (out / "usr/gen_init_cpio").write_text('#!/bin/sh\ncat "$1"\n')
    (out / "usr/gen_init_cpio").chmod(0o755)


def install(src: Path, built: Path, ident: str) -> None:
    """Build and install the selftests in src, or fail as GATE_FAKE says."""
    installed = built / "kselftest_install"
    if FAKE == "selftest-build-error":
        print("jiffies-stampede.c:7:1: error: expected made-up before thing")
        sys.exit("make: *** [../lib.mk:1: jiffies-stampede] Error 1")
    programs = ["ftrace/hwlat_watch", "timers/jiffies-stampede", "ftrace/hwlat_seqnum"]
    if FAKE == "selftest-missing":
        programs.pop()
    for name in programs:
        for path in (built / name, installed / name):
            path.parent.mkdir(parents=True, exist_ok=True)
        # As the real Makefiles: what is there already is up to date.
        if FAKE == "stale-program" or not (built / name).exists():
            old = "0123456789abcdef" if FAKE == "stale-program" else ident
            (built / name).write_text((src / f"{name}.c").read_text() + f"\nBuild ID: {old}\n")
        (installed / name).write_text((built / name).read_text())
    (installed / "ftrace/ftracetest").write_text("")
    if FAKE == "selftest-fat":
        os.truncate(installed / "timers/jiffies-stampede", 2**32)
