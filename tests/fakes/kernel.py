# SPDX-License-Identifier: GPL-2.0
"""What the made-up compiler does: a kernel is the text of the two sources."""

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
