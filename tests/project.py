# SPDX-License-Identifier: GPL-2.0
"""A made-up project and kernel tree, small enough to run the whole gate on in a second."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from gatelib.data.tests import SELFTESTS_DIR
from gatelib.data.trees import FIXES

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parent / "scripts"
FAKES = HERE / "fakes"

HWLAT = "kernel/trace/trace_hwlat.c"
TICK = "kernel/time/tick-sched.c"

_FILLER = "".join(f"int line{i};\n" for i in range(8))
HWLAT_ABSENT = _FILLER + "width = read_each_turn();\n" + _FILLER
HWLAT_FIXED = HWLAT_ABSENT.replace("read_each_turn", "read_once")
TICK_ABSENT = _FILLER + "lock();\nupdate();\n" + _FILLER
TICK_SPLIT = TICK_ABSENT.replace("update();\n", "check();\nupdate_locked();\n")
TICK_OURS = TICK_SPLIT.replace("lock();\n", "trylock();\n", 1)
TICK_UPSTREAM = TICK_ABSENT.replace("lock();\n", "gate();\nlock();\n", 1)

# Where a tree gets the tests.
PLACES = {
    "kernel/trace/Kconfig": "config HWLAT_TRACER\n\tbool\n\nconfig OTHER\n\tbool\n",
    "kernel/time/Kconfig": "config HIGH_RES_TIMERS\n\tbool\n",
    "kernel/trace/Makefile": "obj-$(CONFIG_HWLAT_TRACER) += trace_hwlat.o\n",
    f"{SELFTESTS_DIR}/ftrace/Makefile": "TEST_PROGS := ftracetest\n\ninclude ../lib.mk\n",
    f"{SELFTESTS_DIR}/timers/Makefile":
        "TEST_GEN_PROGS_EXTENDED = $(DESTRUCTIVE_TESTS)\n\ninclude ../lib.mk\n",
}

Change = Tuple[str, Optional[str], Optional[str]]	# file, before, after


def diff(*changes: Change) -> str:
    """Return a git patch that makes the changes."""
    text = "Subject: made up\n\n---\n"
    for name, before, after in changes:
        text += f"diff --git a/{name} b/{name}\n"
        text += "new file mode 100644\n" if before is None else ""
        text += "".join(difflib.unified_diff(
            (before or "").splitlines(True), (after or "").splitlines(True),
            "/dev/null" if before is None else f"a/{name}", f"b/{name}"))
    return text + "-- \n2.0\n"


def series() -> Dict[str, str]:
    """Return file name -> text of a made-up series with the fixes, and one more patch."""
    return {
        "0000-cover-letter.patch": "Subject: a cover letter\n",
        "0001-tracing-Fix-it.patch": diff((HWLAT, HWLAT_ABSENT, HWLAT_FIXED)),
        "0002-tick-sched-Split-it.patch": diff((TICK, TICK_ABSENT, TICK_SPLIT)),
        "0003-tick-sched-Use-trylock.patch": diff((TICK, TICK_SPLIT, TICK_OURS)),
        "0004-tracing-Add-tests.patch": diff(
            ("kernel/trace/trace_hwlat_test.c", None, "test hwlat;\n")),
    }


def write(folder: Path, files: Dict[str, str]) -> None:
    """Write name -> text below folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def make_project(folder: Path) -> None:
    """Make a project with the real scripts and a made-up series in folder."""
    shutil.copytree(SCRIPTS, folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    write(folder / "patches" / "mainline", series())
    other = diff((TICK, "int unlike;\n", "int all;\n"))
    write(folder / "patches" / "reverse", {
        name: diff((HWLAT, HWLAT_FIXED, HWLAT_ABSENT)) if fix.id == "hwlat"
        else diff((TICK, TICK_UPSTREAM, TICK_ABSENT)) if not number else other
        for fix in FIXES for number, name in enumerate(fix.reverse)})
    for name in ("kunit", "selftests"):
        shutil.copytree(SCRIPTS.parent / name, folder / name)
    write(folder, {".kunitconfig": "CONFIG_KUNIT=y\n",
                   "kunit/x86_64.config": "# a comment\nCONFIG_SMP=y\nCONFIG_NR_CPUS=300\n"
                                          "CONFIG_MODULES=n\n"})


def make_tree(folder: Path, hwlat: str = HWLAT_FIXED, tick: str = TICK_ABSENT,
              version: str = "6.12") -> Path:
    """Make a kernel tree with the given sources in folder; return folder."""
    major, minor = version.split(".")
    write(folder, {
        "Makefile": f"VERSION = {major}\nPATCHLEVEL = {minor}\nSUBLEVEL = 7\nEXTRAVERSION =\n",
        "Kbuild": "", "Kconfig": "", "kernel/other.c": "int other;\n", HWLAT: hwlat, TICK: tick,
        **PLACES})
    kunit = folder / "tools" / "testing" / "kunit" / "kunit.py"
    kunit.parent.mkdir(parents=True)
    shutil.copy(FAKES / "kunit.py", kunit)
    return folder


def make_deb(folder: Path, tree: Path, series_name: str, version: str) -> Path:
    """Pack the tree as Debian does; return the .deb."""
    package = f"linux-source-{series_name}"
    root = folder / "deb"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        f"Package: {package}\nVersion: {version}\nArchitecture: all\n"
        "Maintainer: Nobody <nobody@localhost>\nDescription: made up\n")
    (root / "usr" / "src").mkdir(parents=True)
    subprocess.run(["tar", "-cJf", str(root / "usr" / "src" / f"{package}.tar.xz"),
                    f"--transform=s,^{tree.name},{package},", "-C", str(tree.parent), tree.name],
                   check=True)
    deb = folder / f"{package}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "-Zgzip", "--build", str(root), str(deb)], check=True,
                   stdout=subprocess.DEVNULL)
    return deb


def contents(folder: Path) -> Dict[str, Tuple[bytes, int]]:
    """Return everything in folder, to see that nothing was changed."""
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in folder.rglob("*") if path.is_file()}


class ProjectCase(unittest.TestCase):
    """A test with a made-up project, a tree, fake tools and a cache of its own."""

    def setUp(self) -> None:
        temp = tempfile.TemporaryDirectory(prefix="gate-test-")
        self.addCleanup(temp.cleanup)
        self.temp = Path(temp.name).resolve()
        self.project = self.temp / "project"
        self.cache = self.temp / "cache"
        self.out = self.temp / "out"
        make_project(self.project)
        self.tree = make_tree(self.temp / "linux")

    def env(self, fake: str = "", **extra: str) -> Dict[str, str]:
        """Return the environment with the fake tools, which fail as fake says."""
        return dict(os.environ, PATH=f"{FAKES}:{os.environ['PATH']}", GATE_FAKE=fake,
                    GATE_TEST_SCRIPTS=str(self.project / "scripts"), GATE_TEST_FAKES=str(FAKES),
                    GATE_TEST_PID=str(self.temp / "pid"),
                    GATE_TEST_APT_LOG=str(self.temp / "apt.log"),
                    GATE_TEST_INSTALLED=str(self.temp / "installed"), **extra)

    def argv(self, *words: str) -> List[str]:
        return [str(self.project / "scripts" / "gate"), *words, "--cache", str(self.cache),
                "--out", str(self.out)]

    def gate(self, *words: str, fake: str = "", **extra: str) -> "subprocess.CompletedProcess[str]":
        """Run scripts/gate; what it prints must be free of tracebacks, whatever it is."""
        done = subprocess.run(self.argv(*words), env=self.env(fake, **extra), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=100, check=False)
        self.assertNotIn("Traceback", done.stderr + done.stdout)
        return done

    def run_one(self, fake: str = "", state: str = "fixed", flavour: str = "x86_64",
                **extra: str) -> "subprocess.CompletedProcess[str]":
        """Run the gate on one kernel of the made-up tree."""
        return self.gate("run", "--tree", str(self.tree), "--state", state, "--flavour", flavour,
                         fake=fake, **extra)
