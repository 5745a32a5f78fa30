# SPDX-License-Identifier: GPL-2.0
"""A made-up project with a real series, for a kernel tree of a few lines of real C."""

from __future__ import annotations

import atexit
import functools
import mailbox
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from email.message import Message
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from gatelib.data.trees import FIXES, PATCH_SETS
from serieslib.base.git import Git, isolated
from serieslib.base.tables import FORMAT

from .project import SCRIPTS, write

HWLAT = "kernel/trace/trace_hwlat.c"
TICK = "kernel/time/tick-sched.c"
AUTHOR = ("Pat Author", "pat@example.org")
DATE = "2026-11-01T10:00:00 +0000"

_FILLER = "".join(f"int line{i};\n" for i in range(8))
HWLAT_BROKEN = f"{_FILLER}\nint hwlat_width(void)\n{{\n\treturn line0 + line1;\n}}\n"
HWLAT_FIXED = HWLAT_BROKEN.replace("line0 + line1", "line0")
TICK_BROKEN = (_FILLER.replace("line", "tick")
               + "\nint tick_update(void)\n{\n\treturn tick0 + tick1;\n}\n")
TICK_SPLIT = TICK_BROKEN.replace("int tick_update", "int tick_due(void)\n{\n\treturn tick0;\n}\n\n"
                                 "int tick_update").replace("tick0 + tick1", "tick_due() + tick1")
TICK_FIXED = TICK_SPLIT.replace("tick_due() + tick1", "tick_due() - tick1")
TICK_GATE = TICK_BROKEN.replace("tick0 + tick1", "tick0 * tick1")
HWLAT_TEST = "int hwlat_test(void);\nint hwlat_test(void)\n{\n\treturn 1;\n}\n"
TICK_TEST = "int tick_test(void);\nint tick_test(void)\n{\n\treturn 2;\n}\n"
STAMPEDE = "int main(void)\n{\n\treturn 0;\n}\n"
GUEST = "int main(void)\n{\n\treturn 1;\n}\n"

# Compiles for real, and knows what the gate and the series ask of the kernel's.
MAKEFILE = """VERSION = 6
PATCHLEVEL = 12
SUBLEVEL = 7
EXTRAVERSION =
OBJS = kernel/time/tick-sched.o kernel/trace/trace_hwlat.o
HOSTCC = gcc
CC = gcc
build: $(OBJS:%=$(O)/%)
\tcat $^ > $(O)/linux
bzImage: build
\tmkdir -p $(O)/arch/x86/boot
\tcp $(O)/linux $(O)/arch/x86/boot/bzImage
$(O)/%.o: %.c FORCE
\t@mkdir -p $(@D)
\t@echo "  CC      $*.o"
\t@$(CC) $(if $(W),-Wall) -c -o $@ $<
headers:
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) $(O)/.config
%/: FORCE
\t@$(MAKE) --no-print-directory O=$(O) W=$(W) $(patsubst %.c,$(O)/%.o,$(wildcard $@*.c))
FORCE:
"""
SELFTESTS_MAKEFILE = """install:
\tset -e; for file in $(wildcard $(TARGETS:%=%/*.c)); do gcc -Wall -c -o /dev/null $$file; done
"""
KUNIT_PY = """#!/usr/bin/env python3
import subprocess, sys
from pathlib import Path
options = dict(word[2:].split("=", 1) for word in sys.argv if word.startswith("--"))
src = Path(__file__).resolve().parents[3]
(Path(options["build_dir"]) / ".config").write_text(Path(options["kunitconfig"]).read_text())
sys.exit(subprocess.call(["make", "-C", str(src), f"O={options['build_dir']}", "build"]))
"""
GET_MAINTAINER = """#!/bin/sh
case "$*" in
*--nol*) echo 'Main Tainer <main@example.org>'; echo 'Pat Author <pat@example.org>' ;;
*' -f '*) echo 'Main Tainer <main@example.org>' ;;
*) echo 'list@example.org' ;;
esac
"""
# Says what the real one would of the one thing that the tests are about.
CHECKPATCH = """#!/usr/bin/env python3
import re, sys

text = open(sys.argv[-1]).read()
bad = [line for line in text.splitlines() if re.match(r"\\+.*[ \\t]$", line)]
for line in bad:
    print("ERROR:TRAILING_WHITESPACE: trailing whitespace")
sys.exit(1 if bad else 0)
"""

_MESSAGE = """{subject}

What is wrong, and what is done about it, in a line or two that are not
too long.

{tags}Signed-off-by: {name} <{mail}>
"""
_FIX_TAGS = ("Suggested-by: Sue Gester <sue@example.org>\n"
             "Link: https://lore.kernel.org/r/made-up@example.org\n")

# subject, tags, files after it
Commit = Tuple[str, str, Dict[str, str]]
COMMITS: List[Commit] = [
    ("tracing: Fix the width", _FIX_TAGS, {HWLAT: HWLAT_FIXED}),
    ("tick/sched: Split the update", "", {TICK: TICK_SPLIT}),
    ("tick/sched: Use another update", _FIX_TAGS, {TICK: TICK_FIXED}),
    ("tracing: Add tests", "", {"kernel/trace/trace_hwlat_test.c": HWLAT_TEST,
                                "kernel/trace/Kconfig": "config A\nconfig A_TEST\nconfig B\n"}),
    ("tick/sched: Add tests", "", {"kernel/time/tick-sched_test.c": TICK_TEST}),
    ("selftests/timers: Add a test", "", {
        "tools/testing/selftests/timers/stampede.c": STAMPEDE,
        "tools/testing/selftests/timers/Makefile": "TESTS = other stampede\n"}),
]


def make_kernel(folder: Path, hwlat: str = HWLAT_BROKEN, tick: str = TICK_BROKEN) -> Path:
    """Make the kernel tree in folder; return folder."""
    write(folder, {
        "Makefile": MAKEFILE, "Kbuild": "", "Kconfig": "", HWLAT: hwlat, TICK: tick,
        "kernel/trace/Kconfig": "config A\nconfig B\n", "kernel/time/other.c": "int other;\n",
        "kernel/time/Makefile": "", "kernel/trace/Makefile": "",
        "tools/testing/selftests/timers/Makefile": "TESTS = other\n",
        "tools/testing/selftests/Makefile": SELFTESTS_MAKEFILE,
        "tools/testing/kunit/kunit.py": KUNIT_PY, "scripts/get_maintainer.pl": GET_MAINTAINER,
        "scripts/checkpatch.pl": CHECKPATCH})
    for name in ("tools/testing/kunit/kunit.py", "scripts/get_maintainer.pl",
                 "scripts/checkpatch.pl"):
        (folder / name).chmod(0o755)
    return folder


def commit(git: Git, subject: str, tags: str, files: Dict[str, str],
           author: Tuple[str, str] = AUTHOR) -> None:
    """Commit the files as a patch of the series."""
    write(git.folder, files)
    git.run("add", "-A", "-f")
    message = _MESSAGE.format(subject=subject, tags=tags, name=author[0], mail=author[1])
    git.run("commit", "-q", "-m", message, f"--author={author[0]} <{author[1]}>",
            f"--date={DATE}")


def make_series(folder: Path, base: Path, commits: Optional[List[Commit]] = None,
                author: Tuple[str, str] = AUTHOR) -> Git:
    """Make folder a repository: the tree base, tagged, and the series on top of it."""
    shutil.copytree(base, folder)
    git = Git(folder, isolated(dict(os.environ)))
    git.init()
    git.run("add", "-A", "-f")
    git.run("commit", "-q", "-m", "base")
    git.run("tag", "base")
    for each in COMMITS if commits is None else commits:
        commit(git, *each, author=author)
    return git


def store_set(project: Path, name: str, git: Git) -> None:
    """Make the set of the project what the branch has, with a cover letter."""
    folder = project / "patches" / name
    shutil.rmtree(folder, ignore_errors=True)
    git.run("format-patch", "-q", *FORMAT, "--cover-letter", "-o", str(folder), "base..HEAD")
    know_sets(project, name)
    letter = folder / "0000-cover-letter.patch"
    letter.write_text(letter.read_text().replace("*** SUBJECT HERE ***", "Two made-up fixes")
                      .replace("*** BLURB HERE ***", "Why and what for.\n\nIn two paragraphs."))


def know_sets(project: Path, *more: str) -> None:
    """Have the project's table of sets name those that it has, and some more."""
    path = project / "scripts/gatelib/data/trees.py"
    names = tuple(name for name in PATCH_SETS
                  if name in more or (project / "patches" / name).is_dir())
    path.write_text(re.sub(r"^PATCH_SETS = .*$", f"PATCH_SETS = {names!r}",
                           path.read_text("utf-8"), flags=re.M), "utf-8")


@functools.lru_cache(maxsize=None)
def _template(author: Tuple[str, str]) -> Path:
    """Return a folder with a project, its series in git and a tree, to be copied by tests."""
    temp = Path(tempfile.mkdtemp(prefix="series-test-")).resolve()
    atexit.register(shutil.rmtree, temp, ignore_errors=True)
    git = make_series(temp / "git", make_kernel(temp / "linux"), author=author)
    project = temp / "project"
    shutil.copytree(SCRIPTS, project / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    write(project, {
        "kunit/trace_hwlat_test.c": HWLAT_TEST, "kunit/tick-sched_test.c": TICK_TEST,
        "kunit/x86_64.config": "CONFIG_SMP=y\n", ".kunitconfig": "CONFIG_KUNIT=y\n",
        "selftests/timers/stampede.c": STAMPEDE, "selftests/guest/init.c": GUEST,
        "selftests/.hidden": "an editor's\n"})
    store_set(project, "mainline", git)
    for name, path, before, after in (("hwlat", HWLAT, HWLAT_FIXED, HWLAT_BROKEN),
                                      ("tick-sched-gate", TICK, TICK_GATE, TICK_BROKEN)):
        start = make_kernel(temp / f"{name}-tree")
        write(start, {path: before})
        reverse = make_series(temp / name, start, [(f"Revert {name}", "", {path: after})])
        write(project, {f"patches/reverse/{name}.patch":
                        reverse.run("format-patch", "--stdout", "base..HEAD").decode()})
    for fix in FIXES:
        for other in fix.reverse[1:]:
            shutil.copy(project / "patches/reverse" / fix.reverse[0],
                        project / "patches/reverse" / other)
    return temp


class SeriesCase(unittest.TestCase):
    """A test with a made-up project, its series in a git repository, and a tree."""

    author = AUTHOR

    def setUp(self) -> None:
        temp = tempfile.TemporaryDirectory(prefix="series-test-")
        self.addCleanup(temp.cleanup)
        self.temp = Path(temp.name).resolve()
        for name in ("project", "linux", "git"):
            shutil.copytree(_template(self.author) / name, self.temp / name, symlinks=True)
        self.project = self.temp / "project"
        self.cache = self.temp / "cache"
        self.out = self.temp / "out"
        self.tree = self.temp / "linux"
        self.git = Git(self.temp / "git", isolated(dict(os.environ)))

    def env(self, **extra: str) -> Dict[str, str]:
        """Return an environment in which the user's git configuration is a trap."""
        trap = self.temp / "home"
        write(trap, {".gitconfig": "[diff]\n\tnoprefix = true\n\tcontext = 1\n[format]\n"
                     "\tsignOff = true\n\tsubjectPrefix = TRAP\n[commit]\n\tgpgSign = true\n"
                     "[core]\n\tautocrlf = true\n"})
        return dict(os.environ, HOME=str(trap), **extra)

    def series(self, *words: str, **extra: str) -> "subprocess.CompletedProcess[str]":
        """Run scripts/series; what it prints must be free of tracebacks, whatever it is."""
        done = subprocess.run(
            [str(self.project / "scripts" / "series"), *words, "--cache", str(self.cache)],
            env=self.env(**extra), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=200, check=False)
        self.assertNotIn("Traceback", done.stderr + done.stdout)
        return done

    def ok(self, *words: str, **extra: str) -> str:
        """Run scripts/series, which has to succeed; return its output."""
        done = self.series(*words, **extra)
        self.assertEqual((done.returncode, done.stderr.count("internal")), (0, 0),
                         done.stdout + done.stderr)
        return done.stdout

    def fails(self, status: int, *words: str) -> str:
        """Run scripts/series, which has to fail with one line; return the line."""
        done = self.series(*words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        line = done.stderr.splitlines()[-1]
        self.assertTrue(line.startswith("series: "), line)
        return line

    def set(self, name: str = "mainline") -> Dict[str, bytes]:
        """Return file name -> content of a set."""
        return {path.name: path.read_bytes()
                for path in sorted((self.project / "patches" / name).glob("*"))}

    def mails(self, out: Optional[Path] = None) -> List[Message]:
        """Return the mails of the exported mbox."""
        box = mailbox.mbox(str((out or self.out) / "series.mbox"))
        self.addCleanup(box.close)
        return list(box)

