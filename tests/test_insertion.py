# SPDX-License-Identifier: GPL-2.0
"""The tests put into made-up trees, and into real ones as the patches do it.

Real trees are those of test_results.
"""

import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.insertions import (COPIES_NOT_NAMED, INSERTIONS, KCONFIG_DIR, ConfigEntry,
                                     SelftestWord)
from gatelib.data.tests import GUESTS, SELFTESTS_DIR
from gatelib.data.trees import COVER_LETTER, FIXES, PATCH_SETS
from gatelib.trees import insertion
from gatelib.trees.files import Blob, read_blob, write_file
from gatelib.trees.patches import touched
from gatelib.trees.tree import PackageTree, read_version
from serieslib.sets.owned import owned

from .test_results import real_trees

ROOT = Path(__file__).resolve().parent.parent

TRACE_KCONFIG, TIME_KCONFIG = "kernel/trace/Kconfig", "kernel/time/Kconfig"
TRACE_MAKE, TICK = "kernel/trace/Makefile", "kernel/time/tick-sched.c"
FTRACE, TIMERS = f"{SELFTESTS_DIR}/ftrace/Makefile", f"{SELFTESTS_DIR}/timers/Makefile"
HWLAT_TEST, TICK_TEST = "kernel/trace/trace_hwlat_test.c", "kernel/time/tick-sched_test.c"

HWLAT_ENTRY, TICK_ENTRY = ((ROOT / KCONFIG_DIR / name).read_text()
                           for name in ("HWLAT_TRACER_KUNIT_TEST", "TICK_SCHED_KUNIT_TEST"))
OBJECT = "obj-$(CONFIG_HWLAT_TRACER_KUNIT_TEST) += trace_hwlat_test.o\n"
INCLUDE = '#ifdef CONFIG_TICK_SCHED_KUNIT_TEST\n#include "tick-sched_test.c"\n#endif\n'
FTRACE_LINES = ("TEST_GEN_PROGS += hwlat_seqnum\nTEST_GEN_FILES += hwlat_watch\n"
                "LOCAL_HDRS += trace_instance.h\n")
TIMERS_LINES = ("TEST_GEN_PROGS_EXTENDED += jiffies-stampede\n"
                "LOCAL_HDRS += ../ftrace/trace_instance.h\n")
VARIABLES = ("TEST_GEN_PROGS", "TEST_GEN_PROGS_EXTENDED", "TEST_GEN_FILES", "LOCAL_HDRS",
             "TEST_PROGS", "TEST_PROGS_EXTENDED", "TEST_FILES")

# Each file as text before and text behind the place of ours.
PLAIN = {
    TRACE_KCONFIG: ("config OTHER\n\tbool\n\nconfig HWLAT_TRACER\n\tbool\n\thelp\n\t  Words.\n",
                    "\nconfig OSNOISE_TRACER\n\tbool\n"),
    TRACE_MAKE: ("obj-y += trace.o\nobj-$(CONFIG_HWLAT_TRACER) += trace_hwlat.o\n",
                 "obj-y += last.o\n"),
    TIME_KCONFIG: ("if GENERIC\nconfig HIGH_RES_TIMERS\n\tbool\n", "\nendif\n"),
    TICK: ("int first;\n\nint last;\n", ""),
    FTRACE: ("all:\n\nTEST_PROGS := ftracetest\n", "\ninclude ../lib.mk\n"),
    TIMERS: ("DESTRUCTIVE_TESTS = set-tz\nTEST_GEN_PROGS_EXTENDED = $(DESTRUCTIVE_TESTS)\n",
             "\ninclude ../lib.mk\n\nrun: run_tests\n\ttrue\n"),
}
OURS = {TRACE_KCONFIG: "\n" + HWLAT_ENTRY, TIME_KCONFIG: "\n" + TICK_ENTRY, TRACE_MAKE: OBJECT,
        TICK: "\n" + INCLUDE, FTRACE: FTRACE_LINES, TIMERS: TIMERS_LINES}


def encoded(text):
    return text if isinstance(text, bytes) else text.encode()


def made_up():
    return {name: before + behind for name, (before, behind) in PLAIN.items()}


def lookup_in(tree):
    return lambda name: Blob(encoded(tree[name])) if tree.get(name) is not None else None


def words(text):
    """Return what lib.mk finds in the variables of a selftest's Makefile."""
    with tempfile.TemporaryDirectory(prefix="gate-test-") as temp:
        write_file(Path(temp) / "x" / "Makefile", Blob(encoded(text)))
        probe = "".join(f"$(info {name}=$({name}))\n" for name in VARIABLES) + "probe:\n\t@:\n"
        write_file(Path(temp) / "lib.mk", Blob(probe.encode()))
        done = subprocess.run(["make", "-s", "-C", f"{temp}/x", "probe"], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True)
    pairs = (line.partition("=") for line in done.stdout.splitlines() if "=" in line)
    return {name: sorted(value.split()) for name, _, value in pairs}


class InsertionCase(unittest.TestCase):
    """A tree of which a test changes one file."""

    def add(self, changes, files=None):
        return insertion.add(files or {}, lookup_in({**made_up(), **changes}), ROOT)

    def check(self, name, before, behind, ours=None):
        """See our text between before and behind, in bytes."""
        got = self.add({name: encoded(before) + encoded(behind)})[name].data
        ours = OURS[name] if ours is None else ours
        self.assertEqual(got, encoded(before) + encoded(ours) + encoded(behind))
        again = insertion.add({name: Blob(got)}, lookup_in(made_up()), ROOT)[name].data
        self.assertEqual(again, got)

    def same(self, name, text):
        """See that the file with this text has all that it needs."""
        self.assertEqual(self.add({name: text})[name].data, encoded(text))

    def line(self, call, *args):
        with self.assertRaises(GateError) as caught:
            call(*args)
        self.assertEqual(caught.exception.status, UNUSABLE)
        line = caught.exception.line()
        self.assertNotIn("\n", line)
        return line

    def refuses(self, name, text, *wanted):
        line = self.line(self.add, {name: text})
        for each in (name, *wanted):
            self.assertIn(each, line)


class Everywhere(InsertionCase):
    def test_plain(self):
        for name, (before, behind) in PLAIN.items():
            with self.subTest(name):
                self.check(name, before, behind)

    def test_bytes_elsewhere_stay(self):
        for name, (before, behind) in PLAIN.items():
            with self.subTest(name):
                odd = b"# \xff\xfe\x85\xa0\x0c\xc2\xb5s\r\r\n"
                self.check(name, odd + encoded(before), encoded(behind) + odd if behind else b"",
                           OURS[name].replace("\n", "\r\n"))

    def test_ends_of_lines_as_the_file_has_them(self):
        for name, texts in PLAIN.items():
            with self.subTest(name):
                self.check(name, *(text.replace("\n", "\r\n") for text in texts),
                           OURS[name].replace("\n", "\r\n"))

    def test_no_newline_at_the_end(self):
        for name, (before, behind) in PLAIN.items():
            with self.subTest(name):
                if behind:
                    self.check(name, before, behind[:-1])
                if name not in (FTRACE, TIMERS):
                    got = self.add({name: before[:-1]})[name].data
                    self.assertEqual(got.decode(), before + OURS[name])

    def test_missing_file(self):
        for name in PLAIN:
            self.refuses(name, None, "is missing")

    def test_place_gone(self):
        for name in PLAIN:
            if name != TICK:
                self.refuses(name, "# nothing here\n", " has no ")
                self.refuses(name, "", " has no ")

    def test_place_twice(self):
        for name, (before, behind) in PLAIN.items():
            if name == TICK:
                continue
            text = (before + behind) * 2
            numbers = [str(at) for at, line in enumerate(text.splitlines(), 1) if re.match(
                r"config (HWLAT_TRACER|HIGH_RES_TIMERS)$|.*trace_hwlat\.o|include", line)]
            self.assertEqual(len(numbers), 2)
            self.refuses(name, text, "lines " + " and ".join(numbers))

    def test_result_has_all_that_is_touched_and_given(self):
        files = {"other.c": Blob(b"other"), "gone.c": None}
        before = dict(files)
        got = self.add({}, files)
        self.assertEqual(set(got), insertion.touched(ROOT) | set(files))
        self.assertEqual({name: got[name] for name in files}, before)
        self.assertEqual(files, before)

    def test_files_win_over_the_tree(self):
        got = self.add({}, {TICK: Blob(b"int fixed;\n", True)})[TICK]
        self.assertEqual(got, Blob(b"int fixed;\n\n" + INCLUDE.encode(), True))
        self.assertIn("is missing", self.line(self.add, {}, {TICK: None}))


class Kconfig(InsertionCase):
    def test_new_entries_around(self):
        before, behind = PLAIN[TRACE_KCONFIG]
        new = "config NEW\n\tbool\n\thelp\n\t  config HWLAT_TRACER is not this.\n\n"
        self.check(TRACE_KCONFIG, new + before, "\n" + new + behind)

    def test_every_statement_ends_an_entry(self):
        before, _ = PLAIN[TRACE_KCONFIG]
        for word in ("config X", "menuconfig X", "choice", "endchoice", 'menu "x"', "endmenu",
                     "if X", "endif", 'source "x"', 'comment "x"', 'mainmenu "x"'):
            self.check(TRACE_KCONFIG, before, f"\n{word}\n\tbool\n")

    def test_what_leads_to_the_next_entry_stays_with_it(self):
        before, behind = PLAIN[TRACE_KCONFIG]
        self.check(TRACE_KCONFIG, before, "\n# about the next one\n#\n" + behind)

    def test_help_that_looks_like_a_comment_or_a_statement(self):
        before, behind = PLAIN[TRACE_KCONFIG]
        self.check(TRACE_KCONFIG, before + "\n\t  if it is so:\n\n\t  # echo hwlat\n", behind)
        self.check(TRACE_KCONFIG, before + "\t  config OTHER \\\n", behind)

    def test_end_of_file(self):
        self.check(TRACE_KCONFIG, PLAIN[TRACE_KCONFIG][0], "")
        self.check(TRACE_KCONFIG, PLAIN[TRACE_KCONFIG][0], "\n\n")

    def test_next_entry_without_a_blank_line(self):
        self.check(TRACE_KCONFIG, PLAIN[TRACE_KCONFIG][0], "config OTHER2\n",
                   "\n" + HWLAT_ENTRY + "\n")

    def test_white_space_and_kind(self):
        for head in ("config\tHWLAT_TRACER", "config  HWLAT_TRACER \t", "menuconfig HWLAT_TRACER",
                     "config HWLAT_TRACER # why"):
            self.check(TRACE_KCONFIG, head + "\n        bool\n", "\nendmenu\n")

    def test_other_symbols(self):
        self.refuses(TRACE_KCONFIG, "config HWLAT_TRACER_MORE\nconfig MY_HWLAT_TRACER\n"
                     "# config HWLAT_TRACER\n\thelp\n\t  config HWLAT_TRACER\n",
                     '"config HWLAT_TRACER"')

    def test_there_already(self):
        self.same(TRACE_KCONFIG, "config HWLAT_TRACER_KUNIT_TEST\n\ttristate \"theirs\"\n")


class KernelMakefile(InsertionCase):
    def test_forms(self):
        for text in ("obj-$(CONFIG_OTHER)\t+=\ttrace_hwlat.o\n", "obj-y+=trace_hwlat.o\n",
                     "  obj-y += a.o trace_hwlat.o b.o # why\n", "obj-y := trace_hwlat.o\n",
                     "obj-y += a.o \\\n\ttrace_hwlat.o \\\n\tb.o\n",
                     "obj-y \\\n+= trace_hwlat.o\n"):
            self.check(TRACE_MAKE, "# trace_hwlat.o\nifdef X\n" + text, "endif\nobj-y += b.o\n")

    def test_no_adding(self):
        for text in ("# obj-y += trace_hwlat.o\n", "obj-y += trace_hwlat.o.x my_trace_hwlat.o\n",
                     "CFLAGS_REMOVE_trace_hwlat.o = -pg\n", "obj-y += a.o # trace_hwlat.o\n",
                     "# a comment \\\nobj-y += trace_hwlat.o\n"):
            self.refuses(TRACE_MAKE, text, "trace_hwlat.o")

    def test_continued_at_the_end_of_the_file(self):
        for end in ("\\", "\\\n"):
            got = self.add({TRACE_MAKE: "obj-y += trace_hwlat.o " + end})[TRACE_MAKE].data
            self.assertEqual(got.decode(), "obj-y += trace_hwlat.o \\\n\n" + OBJECT)

    def test_escaped_backslash_continues_nothing(self):
        self.check(TRACE_MAKE, "A = \\\\\nobj-y += trace_hwlat.o\n", "")

    def test_there_already(self):
        self.same(TRACE_MAKE, "obj-y += a.o \\\n  trace_hwlat_test.o\n")
        self.check(TRACE_MAKE, "# trace_hwlat_test.o\nobj-y += trace_hwlat.o\n", "")


class SourceFile(InsertionCase):
    def test_moved_functions(self):
        self.check(TICK, "int last;\n\n/* \" */ int first;\nchar c = '\"';\n", "")

    def test_blank_line_is_there(self):
        self.check(TICK, "int last;\n\n", "", INCLUDE)

    def test_there_already(self):
        for line in ('#include "tick-sched_test.c"', ' # include\t"tick-sched_test.c" /* why */',
                     '/* why */ \n#include "tick-sched_test.c"'):
            self.same(TICK, f"int first;\n{line}\nint last;\n")

    def test_comment_is_no_include(self):
        for text in ('/*\n#include "tick-sched_test.c"\n*/\n', '// #include "tick-sched_test.c"\n',
                     '#include "my_tick-sched_test.c"\n'):
            self.check(TICK, text, "")


@unittest.skipUnless(shutil.which("make"), "no make here")
class SelftestMakefile(InsertionCase):
    def gains(self, name, text, wanted):
        before, after = words(text), words(self.add({name: text})[name].data)
        gained = {each: sorted(set(after[each]) - set(before[each])) for each in VARIABLES}
        self.assertEqual({each: got for each, got in gained.items() if got}, wanted)
        for each in VARIABLES:
            self.assertLessEqual(set(before[each]), set(after[each]))
            self.assertEqual(len(after[each]), len(set(after[each])))

    def test_ftrace(self):
        wanted = {"TEST_GEN_PROGS": ["hwlat_seqnum"], "TEST_GEN_FILES": ["hwlat_watch"],
                  "LOCAL_HDRS": ["trace_instance.h"]}
        for text in ("include ../lib.mk", "# SPDX\ninclude\t ../lib.mk # why\n",
                     "TEST_GEN_FILES := poll\n\n\ninclude ../lib.mk\nall:\n",
                     "TEST_GEN_PROGS = a \\\n\tb \\\n\ninclude ../lib.mk\n",
                     "ifdef NO\nX = y\nelse\n  include ../lib.mk\nendif\n",
                     "all:\n\ttrue\ninclude ../lib.mk\n"):
            self.gains(FTRACE, text, wanted)

    def test_timers(self):
        wanted = {"TEST_GEN_PROGS_EXTENDED": ["jiffies-stampede"],
                  "LOCAL_HDRS": ["../ftrace/trace_instance.h"]}
        for assign in ("=", ":="):
            self.gains(TIMERS, "DESTRUCTIVE_TESTS = a b\n\n\nTEST_GEN_PROGS_EXTENDED "
                       f"{assign} $(DESTRUCTIVE_TESTS)\n# lib\ninclude ../lib.mk\n", wanted)

    def test_license_stays_first(self):
        self.check(FTRACE, "# SPDX\n", "include ../lib.mk\n")

    def test_there_already(self):
        self.same(FTRACE, "TEST_GEN_PROGS := \\\n a hwlat_seqnum\nTEST_GEN_FILES := hwlat_watch x\n"
                  "LOCAL_HDRS = trace_instance.h\ninclude ../lib.mk\n")
        self.same(TIMERS, "DESTRUCTIVE_TESTS = set-tz jiffies-stampede\n"
                  "TEST_GEN_PROGS_EXTENDED = $(DESTRUCTIVE_TESTS)\n"
                  "LOCAL_HDRS += ../ftrace/trace_instance.h\ninclude ../lib.mk\n")

    def test_half_there(self):
        self.gains(FTRACE, "TEST_GEN_PROGS := hwlat_seqnum\ninclude ../lib.mk\n",
                   {"TEST_GEN_FILES": ["hwlat_watch"], "LOCAL_HDRS": ["trace_instance.h"]})

    def test_too_late_is_not_there(self):
        self.gains(FTRACE, "TEST_GEN_FILES = hwlat_watch\ninclude ../lib.mk\n"
                   "TEST_GEN_PROGS = hwlat_seqnum\n",
                   {"TEST_GEN_PROGS": ["hwlat_seqnum"], "LOCAL_HDRS": ["trace_instance.h"]})


class Sources(InsertionCase):
    def test_same_as_the_series_owns(self):
        # A tree has a config of its own, in one way or another.
        wanted = {name: path for name, path in owned(ROOT).items()
                  if path.name not in COPIES_NOT_NAMED}
        self.assertEqual(insertion.copies(ROOT), wanted)

    def test_every_source_has_a_place(self):
        paths = set(insertion.copies(ROOT).values())
        for path in [*(ROOT / "kunit").rglob("*.[ch]"), *(ROOT / "selftests").rglob("*.tc"),
                     *(ROOT / "selftests").rglob("*.[ch]")]:
            if ROOT / "selftests" / "guest" not in path.parents:
                self.assertIn(path, paths)

    def test_what_guests_run_is_in_a_makefile(self):
        there = {f"{row.file}:{row.word}" for row in INSERTIONS if isinstance(row, SelftestWord)}
        for item in (item for guest in GUESTS for item in guest.items if not item.case):
            for name in (item.program, *item.files):
                folder, _, word = name.rpartition("/")
                self.assertIn(f"{SELFTESTS_DIR}/{folder}/Makefile:{word}", there)

    def test_later_ones_come_along(self):
        with tempfile.TemporaryDirectory(prefix="gate-test-") as temp:
            root = Path(temp)
            names = {"kunit/trace_hwlat_test.c": HWLAT_TEST, "kunit/tick-sched_test.c": TICK_TEST,
                     "kunit/tick-sched_more.h": "kernel/time/tick-sched_more.h",
                     "kunit/x86_64.config": None, "selftests/README": None,
                     "selftests/timers/config": None, "selftests/guest/init.c": None,
                     "selftests/ftrace/.hidden.c": None,
                     "selftests/ftrace/new.c": f"{SELFTESTS_DIR}/ftrace/new.c",
                     "selftests/new/test.d/x.tc": f"{SELFTESTS_DIR}/new/test.d/x.tc"}
            self.assertIn("kunit/trace", self.line(insertion.touched, root))
            for name in names:
                write_file(root / name, Blob(b""))
            self.assertEqual(insertion.copies(root), {place: root / name for name, place
                                                      in names.items() if place})
            self.assertIn("HWLAT_TRACER_KUNIT_TEST is missing", self.line(
                insertion.add, {}, lookup_in(made_up()), root))

    def test_present(self):
        self.assertFalse(insertion.present(lookup_in(made_up()), ROOT))
        for name in (HWLAT_TEST, TICK_TEST, f"{SELFTESTS_DIR}/ftrace/hwlat_seqnum.c",
                     f"{SELFTESTS_DIR}/timers/jiffies-stampede.c"):
            self.assertTrue(insertion.present(lookup_in({**made_up(), name: "older\n"}), ROOT))

    def test_older_ones_are_replaced(self):
        older = {name: "older\n" for name in insertion.copies(ROOT)}
        got = self.add(older)
        for name, path in insertion.copies(ROOT).items():
            self.assertEqual(got[name], read_blob(path))


class Keep(InsertionCase):
    def setUp(self):
        self.full = {name: blob.data for name, blob in self.add({}).items()}

    def keep(self, tree, files=None):
        return insertion.keep(files or {}, lookup_in(tree), ROOT)

    def test_nothing_changes(self):
        for name in insertion.copies(ROOT):
            self.full[name] = b"older\n"
        files = {"fixed.c": Blob(b"fixed")}
        got = self.keep(self.full, files)
        self.assertEqual(got, {**{name: Blob(data) for name, data in self.full.items()}, **files})

    def test_adding_changes_nothing(self):
        self.assertEqual(insertion.add({}, lookup_in(self.full), ROOT),
                         {name: Blob(data) for name, data in self.full.items()})

    def test_each_missing_source_is_named(self):
        for name in insertion.copies(ROOT):
            line = self.line(self.keep, {**self.full, name: None})
            self.assertIn(f"no {name}; use --tests ours", line)

    def test_each_missing_line_is_named(self):
        for row in INSERTIONS:
            word = row.symbol if isinstance(row, ConfigEntry) else row[1]
            text = self.full[row.file].decode()
            without = "".join(line for line in text.splitlines(True)
                              if not line.rstrip('"\n').endswith(row[2] if isinstance(
                                  row, SelftestWord) else word))
            self.assertNotEqual(text, without)
            line = self.line(self.keep, {**self.full, row.file: without})
            self.assertIn(word, line)
            self.assertIn(f"in {row.file}; use --tests ours", line)
            self.assertIn(f"in {row.file}", self.line(self.keep, {**self.full, row.file: None}))

    def test_what_fixes_changed_counts(self):
        self.assertIn(TICK, self.line(self.keep, self.full, {TICK: Blob(b"int fixed;\n")}))


def patches_of_tests(series):
    """Return the patches of a set that are no fixes."""
    folder = ROOT / "patches" / series
    others = [glob for fix in FIXES for glob in fix.patches] + [COVER_LETTER]
    return [path for path in sorted(folder.glob("[0-9]*.patch"))
            if not any(path.match(glob) for glob in others)]


class AsThePatches(unittest.TestCase):
    """The patches say the same as the table: one that differs is a mistake in either."""

    def test_kernel_lines(self):
        for series in PATCH_SETS:
            added = {}
            for patch in patches_of_tests(series):
                for part in re.split(r"(?m)^diff --git a/", patch.read_text())[1:]:
                    name = part.split()[0]
                    if name.startswith("kernel/") and "\nnew file mode" not in part:
                        self.assertFalse(re.findall(r"(?m)^-(?!--? )", part))
                        added[name] = re.findall(r"(?m)^\+(?!\+\+ )(.*\n)", part)
            wanted = {name: encoded(text).decode().strip("\n") for name, text in OURS.items()
                      if name.startswith("kernel/")}
            self.assertEqual({name: "".join(lines).strip("\n") for name, lines in added.items()},
                             wanted, series)

    def patched(self, series, lookup):
        """Return what the set's patches make of the tree, None if they do not fit."""
        patches = patches_of_tests(series)
        if not patches:
            return None
        with tempfile.TemporaryDirectory(prefix="gate-test-") as temp:
            names = touched(patches)
            for name in names:
                write_file(Path(temp) / name, lookup(name))
            done = subprocess.run(["git", "apply", *map(str, patches)], cwd=temp, check=False,
                                  stderr=subprocess.DEVNULL, env={"GIT_CEILING_DIRECTORIES": str(
                                      Path(temp).parent), "PATH": "/usr/bin:/bin"})
            return ({name: read_blob(Path(temp) / name) for name in names}
                    if done.returncode == 0 else None)

    def test_real_trees(self):
        for src in real_trees():
            with self.subTest(tree=str(src)):
                self.compare(src)

    def compare(self, src):
        lookup = (PackageTree(src.parent.name, src.parents[2]).lookup
                  if (src.parent / "package").exists() else lambda name: read_blob(src / name))
        wanted = self.patched(read_version(src).series, lookup)
        if wanted is None:
            self.skipTest("no set of patches fits the tree")
        got = insertion.add({}, lookup, ROOT)
        for name, blob in wanted.items():
            if name in (FTRACE, TIMERS) and shutil.which("make"):
                self.assertEqual(words(got[name].data), words(blob.data))
            elif name.startswith("kernel/") or name in insertion.copies(ROOT):
                self.assertEqual(got[name], blob, name)
        self.assertEqual(insertion.add(got, lookup, ROOT), got)
        # Patched trees are complete, and have nothing to be added to.
        self.assertEqual(insertion.keep(wanted, lookup, ROOT), wanted)
        self.assertEqual(insertion.add(wanted, lookup, ROOT), wanted)


if __name__ == "__main__":
    unittest.main()
