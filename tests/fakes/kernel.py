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
    image.write_text("".join((src / name).read_text() for name in
                             ("kernel/trace/trace_hwlat.c", "kernel/time/tick-sched.c")))


def tools(out: Path) -> None:
    """Make what a build leaves behind that the gate uses."""
    for name in ("usr/gen_init_cpio", "include/config/kernel.release", "lib/test_lockup.ko"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / "include/config/kernel.release").write_text("6.12.7-made-up\n")
    (out / "lib/test_lockup.ko").write_text("module\n")
    (out / "usr/gen_init_cpio").write_text('#!/bin/sh\ncat "$1"\n')
    (out / "usr/gen_init_cpio").chmod(0o755)


def install(src: Path, installed: Path) -> None:
    """Build and install the selftests in src, or fail as GATE_FAKE says."""
    if FAKE == "selftest-build-error":
        print("jiffies-stampede.c:7:1: error: expected made-up before thing")
        sys.exit("make: *** [../lib.mk:1: jiffies-stampede] Error 1")
    programs = {"timers/jiffies-stampede": src / "timers" / "jiffies-stampede.c",
                "ftrace/hwlat_seqnum": src / "ftrace" / "hwlat_seqnum.c"}
    if FAKE == "selftest-missing":
        programs.popitem()
    for name, source in programs.items():
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_text(source.read_text())
    for name in ("ftrace/hwlat_watch", "ftrace/ftracetest"):
        (installed / name).parent.mkdir(exist_ok=True)
        (installed / name).write_text("")
    if FAKE == "selftest-fat":
        os.truncate(installed / "timers/jiffies-stampede", 2**32)
