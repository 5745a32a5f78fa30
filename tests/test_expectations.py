# SPDX-License-Identifier: GPL-2.0
"""Expectation files: what is read, which line counts, and everything that is refused."""

import errno
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.kernels import FLAVOURS
from gatelib.data.tests import GUESTS, SUITES_KUNIT
from gatelib.data.trees import FIXES
from gatelib.results.declared import declared, flavours_of
from gatelib.results.expectations import (KINDS, Expectations, Line, last_witness, load,
                                          witnesses)

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "scripts" / "expectations"
ALL = ("hwlat-absent", "tick-absent", "tick-atomic-gate", "um")
SUITES = (*SUITES_KUNIT, *(item.suite for guest in GUESTS for item in guest.items))

DECLARED = {"hwlat": ("one", "two"), "tick_sched": ("one",), "jiffies-stampede": ("one", "two")}
COMMENT = "# A reason.\n# Link: MAINTAINERS-notes.md\n"
FLAKE = (COMMENT + "# Bug report: MAINTAINERS-notes.md\n# Board: a board\n# Version: 6.12\n"
         "# Rate: 50\n")


def declared_here():
    """Return what the sources declare, with the cases that come from other branches."""
    found = {suite: set(cases) for suite, cases in declared(ROOT).items()}
    found["tick_sched"].add("at_most_one_cpu_waits")
    found["jiffies-stampede"].add("at_most_one_cpu_waits")
    return found


class Folder(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory(prefix="gate-test-")
        self.addCleanup(temp.cleanup)
        self.folder = Path(temp.name).resolve()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(self, *names):
        return load(self.folder, names, DECLARED, FLAVOURS)

    def refused(self, call, *arguments):
        """Return the one line with which the call is refused."""
        with self.assertRaises(GateError) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.status, UNUSABLE)
        self.assertTrue(caught.exception.todo)
        line = caught.exception.line()
        self.assertTrue(line.isprintable(), line)
        return line

    def assert_refused(self, text, start, *words, kind="fails"):
        """Write text as x-KIND.txt; loading it must be refused with such a line."""
        self.write(f"x-{kind}.txt", text)
        line = self.refused(self.load, "x")
        self.assertEqual(line[:len(start)], start)
        for word in words:
            self.assertIn(word, line)


class Read(Folder):
    def test_lines(self):
        self.write("x-fails.txt", f"# SPDX-License-Identifier: GPL-2.0\n\n{COMMENT}hwlat.one\n"
                                  f"hwlat.two,um\r\n\n{COMMENT}jiffies-stampede.one")
        self.write("x-flakes.txt", f"{FLAKE}  tick_sched.one,x86_64 \n")
        self.write("y-skips.txt", f"{COMMENT}hwlat.one,um\n")
        found = self.load("y", "x")
        self.assertEqual(found.names, ("y", "x"))
        self.assertEqual(found.lines, (
            Line("hwlat.one", "um", "skips", "y-skips.txt:3", "y"),
            Line("hwlat.one", "", "fails", "x-fails.txt:5", "x"),
            Line("hwlat.two", "um", "fails", "x-fails.txt:6", "x"),
            Line("jiffies-stampede.one", "", "fails", "x-fails.txt:10", "x"),
            Line("tick_sched.one", "x86_64", "flakes", "x-flakes.txt:7", "x")))

    def test_nothing(self):
        self.write("x-fails.txt", "# only a comment\n")
        for names in ((), ("x",)):
            found = self.load(*names)
            self.assertEqual((found.lines, found.names), ((), names))
            self.assertIsNone(found.of("hwlat.one", "um"))

    def test_file_anywhere(self):
        path = str(self.write("elsewhere/my.own-flakes.txt", f"{FLAKE}hwlat.one\n"))
        found = load(self.folder / "none", [path], DECLARED, FLAVOURS)
        self.assertEqual(found.lines,
                         (Line("hwlat.one", "", "flakes", f"{path}:7", "my.own"),))

    def test_file_without_a_slash(self):
        self.write("x-fails.txt", f"{COMMENT}hwlat.one\n")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        found = load(self.folder / "none", ["x-fails.txt"], DECLARED, FLAVOURS)
        self.assertEqual(found.lines[0].where, "x-fails.txt:3")

    def test_file_named_twice_is_read_once(self):
        path = str(self.write("x-fails.txt", f"{COMMENT}hwlat.one\n"))
        found = self.load("x", path, "x")
        self.assertEqual((len(found.lines), found.names), (1, ("x", path)))

    def test_names_of_drm_ci(self):
        self.write("x-flakes.txt", f"{COMMENT}# Board Name: a board\n# Bug Report: a link\n"
                                   "# failure rate: 50\n# IGT Version: 1.28\n"
                                   "# LINUX VERSION: 6.12\nhwlat.one\n")
        self.assertEqual(len(self.load("x").lines), 1)


class Precedence(Folder):
    def test_skip_before_fail(self):
        self.write("x-fails.txt", f"{COMMENT}hwlat.one,um\nhwlat.two\n")
        self.write("x-skips.txt", f"{COMMENT}hwlat.one\nhwlat.two,um\n")
        found = self.load("x")
        for case, flavour, kind in (("one", "um", "skips"), ("one", "x86_64", "skips"),
                                    ("two", "um", "skips"), ("two", "x86_64", "fails")):
            self.assertEqual(found.of(f"hwlat.{case}", flavour).kind, kind)

    def test_skip_before_flake(self):
        self.write("x-flakes.txt", f"{FLAKE}hwlat.one\n")
        self.write("x-skips.txt", f"{COMMENT}hwlat.one\n")
        self.assertEqual(self.load("x").of("hwlat.one", "um").kind, "skips")

    def test_flavour_before_none(self):
        self.write("x-fails.txt", f"{COMMENT}hwlat.one\nhwlat.two,um\n")
        self.write("y-flakes.txt", f"{FLAKE}hwlat.one,um\nhwlat.two\n")
        for names in (("x", "y"), ("y", "x")):
            found = self.load(*names)
            for case, flavour, kind in (("one", "um", "flakes"), ("one", "x86_64", "fails"),
                                        ("two", "um", "fails"), ("two", "x86_64", "flakes")):
                self.assertEqual(found.of(f"hwlat.{case}", flavour).kind, kind)

    def test_other_flavour_and_other_case(self):
        self.write("x-fails.txt", f"{COMMENT}hwlat.one,um\n")
        found = self.load("x")
        self.assertIsNone(found.of("hwlat.one", "x86_64"))
        self.assertIsNone(found.of("tick_sched.one", "um"))


class BadName(Folder):
    def test_unknown(self):
        self.write("x-fails.txt", "")
        self.write("x-skips.txt", "")
        self.write("a.b-flakes.txt", "")
        self.write("README.txt", "")
        self.assertEqual(self.refused(self.load, "y"),
                         "there is no expectation y; those known are a.b, x")

    def test_unknown_where_there_is_none(self):
        self.assertEqual(self.refused(self.load, "y"),
                         "there is no expectation y; those known are none")

    def test_no_name(self):
        self.write("x-fails.txt", "")
        for name in ("", ".", ".x", "a b", "x\n", "é", "x*", "\0"):
            line = self.refused(self.load, name)
            self.assertRegex(line, "cannot be an expectation's name; those known are x$")

    def test_outside(self):
        self.write("x-fails.txt", "")
        for name in ("../x", "a/b", "/", "./x", "x.txt", "-fails.txt", f"{self.folder}/x"):
            line = self.refused(self.load, name)
            self.assertTrue(line.startswith(f"{name} is neither an expectation nor the file of "
                                            "one; those known are x; "), line)

    def test_file_is_not_there(self):
        for name in ("../x-fails.txt", "x-fails.txt", "a/\0-fails.txt"):
            line = self.refused(self.load, name)
            self.assertIn(" is no regular file; give the path of a file called NAME-fails.txt",
                          line)

    def test_file_is_none(self):
        (self.folder / "d-fails.txt").mkdir()
        os.mkfifo(self.folder / "p-fails.txt")
        for name in ("d", "p"):
            path = f"{self.folder}/{name}-fails.txt"
            self.assertTrue(self.refused(self.load, path).startswith(f"{path} is no regular"))
            self.assertIn("there is no expectation", self.refused(self.load, name))

    def test_file_is_not_readable(self):
        self.write("x-fails.txt", "")
        error = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        with mock.patch("builtins.open", side_effect=error):	# nothing stops root
            line = self.refused(self.load, "x")
        self.assertEqual(line, "x-fails.txt: cannot be read: Permission denied; "
                               "make it readable, or do not name it")


class BadFile(Folder):
    def test_too_large(self):
        comment = "#" * ((1 << 20) - 1) + "\n"
        self.write("x-fails.txt", comment)
        self.load("x")
        self.assert_refused(comment + "\n", "x-fails.txt: is larger than 1048576 bytes; ")

    def test_not_utf8(self):
        self.assert_refused(b"# caf\xc3\xa9\n# caf\xe9\n", "x-fails.txt:2: is not UTF-8; save ")

    def test_where_a_named_file_is(self):
        path = self.write("sub/x-fails.txt", "\n\nhwlat\n")
        self.assertTrue(self.refused(self.load, str(path)).startswith(f"{path}:3: \"hwlat\" is"))


class BadLine(Folder):
    def test_no_case(self):
        for text in ("hwlat", "hwlat.", ".one", "hwlat.one,", "hwlat.one,um,x86_64", "hwlat.one um",
                     "hwlat.one # why", "hwlat.one.two", "hwlat.*", "\ufeffhwlat.one", "\0",
                     "hwlat.one, um", "x" * 1000):
            self.assert_refused(f"{COMMENT}{text}\n", "x-fails.txt:3: \"",
                                "\" is no suite.case[,flavour]; ")

    def test_unknown_suite(self):
        self.assert_refused(f"{COMMENT}hwlat.one\nhvlat.one\n",
                            "x-fails.txt:4: there is no suite hvlat; remove the line; the suites "
                            "are hwlat, jiffies-stampede, tick_sched")

    def test_undeclared_case(self):
        for kind, comment, number in (("fails", COMMENT, 3), ("skips", COMMENT, 3),
                                      ("flakes", FLAKE, 7)):
            self.write("x-fails.txt", "")
            self.assert_refused(f"{comment}tick_sched.two\n", f"x-{kind}.txt:{number}: suite "
                                "tick_sched declares no case two; remove the line", kind=kind)
            (self.folder / f"x-{kind}.txt").unlink()

    def test_unknown_flavour(self):
        self.assert_refused(f"{COMMENT}hwlat.one,arm64\n", "x-fails.txt:3: there is no flavour "
                            "arm64; the flavours are um, x86_64")

    def test_flavour_is_not_the_case(self):
        self.assert_refused(f"{COMMENT}hwlat.one\nhwlat.um\n", "x-fails.txt:4: suite hwlat ")


class BadComment(Folder):
    def test_none(self):
        self.assert_refused("hwlat.one\n", "x-fails.txt:1: hwlat.one has no reason, no Link:; ")

    def test_no_link(self):
        for link in ("", "# Link:\n", "# Link\n"):
            self.assert_refused(f"# A reason.\n{link}hwlat.one\n",
                                f"x-fails.txt:{3 if link else 2}: hwlat.one has no Link:; add it "
                                "to the comment directly above the line")

    def test_no_reason(self):
        for reason in ("", "#\n", "# ---\n", "# SPDX-License-Identifier: GPL-2.0\n"):
            self.assert_refused(f"{reason}# Link: a\nhwlat.one\n",
                                f"x-fails.txt:{3 if reason else 2}: hwlat.one has no reason; ")

    def test_ends_at_a_blank_line(self):
        self.assert_refused(f"{COMMENT}\nhwlat.one\n", "x-fails.txt:4: hwlat.one has no reason, ")
        self.assert_refused(f"{COMMENT}hwlat.one\n \nhwlat.two\n", "x-fails.txt:5: hwlat.two has ")

    def test_ends_at_the_next_comment(self):
        self.assert_refused(f"{COMMENT}hwlat.one\n# Another reason.\nhwlat.two\n",
                            "x-fails.txt:5: hwlat.two has no Link:; ")

    def test_skip(self):
        self.assert_refused("# A reason.\nhwlat.one,um\n", "x-skips.txt:2: hwlat.one has no Link:",
                            kind="skips")

    def test_flake_lacks_a_field(self):
        fields = [line for line in FLAKE.splitlines() if re.match("# [BVR]", line)]
        self.assertEqual(len(fields), 4)
        for field in fields:
            self.assert_refused(FLAKE.replace(f"{field}\n", "") + "hwlat.one\n",
                                f"x-flakes.txt:6: hwlat.one has no {field[2:].split(':')[0]}:; ",
                                kind="flakes")

    def test_flake_lacks_all(self):
        self.assert_refused("hwlat.one\n", "x-flakes.txt:1: hwlat.one has no reason, no Link:, "
                            "no Bug report:, no Board:, no Version:, no Rate:; ", kind="flakes")


class Twice(Folder):
    def test_in_one_file(self):
        self.assert_refused(f"{COMMENT}hwlat.one\nhwlat.two\nhwlat.one\n", "x-fails.txt:5: hwlat."
                            "one is listed twice, first in x-fails.txt:3; remove one of the two")

    def test_same_flavour(self):
        self.assert_refused(f"{COMMENT}hwlat.one,um\nhwlat.one,x86_64\nhwlat.one,um\n",
                            "x-fails.txt:5: hwlat.one is listed twice, first in x-fails.txt:3; ")

    def test_with_and_without_flavour(self):
        for kind, comment, number in (("fails", COMMENT, 3), ("skips", COMMENT, 3),
                                      ("flakes", FLAKE, 7)):
            for first, second in (("", ",um"), (",um", "")):
                self.assert_refused(f"{comment}hwlat.one{first}\nhwlat.one{second}\n",
                                    f"x-{kind}.txt:{number + 1}: hwlat.one is listed twice, first "
                                    f"in x-{kind}.txt:{number}; ", kind=kind)
            (self.folder / f"x-{kind}.txt").unlink()

    def test_in_two_files(self):
        self.write("x-fails.txt", f"{COMMENT}hwlat.one\n")
        self.write("y-fails.txt", f"{COMMENT}hwlat.two\nhwlat.one\n")
        self.assertEqual(self.refused(self.load, "x", "y"),
                         "y-fails.txt:4: hwlat.one is listed twice, first in x-fails.txt:3; "
                         "remove one of the two lines")

    def test_fails_and_flakes(self):
        for flavour in ("", ",um"):
            self.write("x-fails.txt", f"{COMMENT}hwlat.one{flavour}\n")
            self.assert_refused(f"{FLAKE}hwlat.one{flavour}\n", "x-flakes.txt:7: hwlat.one is "
                                "listed twice, first in x-fails.txt:3; ", kind="flakes")


class Witnesses(Folder):
    def test_lines(self):
        self.write("a-absent-fails.txt", f"{COMMENT}hwlat.one\nhwlat.two,um\n")
        self.write("b-absent-fails.txt", f"{COMMENT}tick_sched.one\n")
        self.write("b-absent-skips.txt", f"{COMMENT}hwlat.one\n")
        self.assertEqual(witnesses(self.folder, ("a", "b")), {
            "a": (Line("hwlat.one", "", "fails", "a-absent-fails.txt:3", "a-absent"),
                  Line("hwlat.two", "um", "fails", "a-absent-fails.txt:4", "a-absent")),
            "b": (Line("tick_sched.one", "", "fails", "b-absent-fails.txt:3", "b-absent"),)})

    def test_none(self):
        line = self.refused(witnesses, self.folder, ("a",))
        self.assertTrue(line.startswith("fix a has no witness in "), line)
        self.write("a-absent-fails.txt", "# nothing\n")
        self.assertEqual(self.refused(witnesses, self.folder, ("a",)), line)

    def test_bad_line(self):
        self.write("a-absent-fails.txt", "hwlat.one\n")
        self.assertTrue(self.refused(witnesses, self.folder, ("a",))
                        .startswith("a-absent-fails.txt:1: hwlat.one has no reason"))


class LastWitness(Folder):
    """Two witnesses of a fix, hwlat.one and hwlat.two, unless a test says otherwise."""

    def check(self, *lines, flavours=FLAVOURS, suites=("hwlat",), of=("hwlat.one", "hwlat.two")):
        found = Expectations([Line(case, flavour, kind, f"x:{number}", "x")
                              for number, (case, flavour, kind) in enumerate(lines, 1)], ["x"])
        fix_lines = {"a": [Line(*name.partition(",")[::2], "fails", "a:1", "a") for name in of]}
        last_witness(found, fix_lines, flavours, suites)

    def assert_taken(self, *lines, **how):
        return self.refused(lambda: self.check(*lines, **how))

    def test_one_is_enough(self):
        self.check()
        self.check(("hwlat.one", "", "flakes"))
        self.check(("hwlat.one", "", "fails"), ("hwlat.two", "", "fails"))
        self.check(("hwlat.one", "", "skips"), ("hwlat.two", "um", "flakes"))
        self.check(("hwlat.one", "um", "skips"), ("hwlat.two", "x86_64", "flakes"))

    def test_all_taken(self):
        self.assertEqual(
            self.assert_taken(("hwlat.one", "", "flakes"), ("hwlat.two", "", "skips")),
            "no witness of fix a is left in um, x86_64: x:1 (hwlat.one), x:2 (hwlat.two); "
            "choose a flavour in which one runs, or remove the line")

    def test_all_taken_flavour_by_flavour(self):
        lines = [("hwlat.one", "", "flakes"), ("hwlat.two", "um", "skips")]
        self.check(*lines)
        self.check(*lines, flavours=["x86_64"])
        self.assertIn("left in um: ", self.assert_taken(*lines, flavours=["um"]))
        self.assert_taken(*lines, ("hwlat.two", "x86_64", "flakes"))

    def test_suite_that_does_not_run_does_not_help(self):
        line = ("hwlat.one", "", "flakes")
        self.check(line, of=["hwlat.one", "tick_sched.one"], suites=["hwlat", "tick_sched"])
        self.assert_taken(line, of=["hwlat.one", "tick_sched.one"])

    def test_selftests_do_not_run_in_um(self):
        how = {"suites": ["jiffies-stampede"], "of": ["jiffies-stampede.one"]}
        self.assert_taken(("jiffies-stampede.one", "x86_64", "flakes"), **how)
        self.check(("jiffies-stampede.one", "um", "flakes"), **how)

    def test_witness_of_another_flavour_does_not_help(self):
        self.assert_taken(("hwlat.one", "um", "flakes"), of=["hwlat.one,um"])
        self.check(("hwlat.one", "um", "flakes"), of=["hwlat.one,um", "hwlat.two,x86_64"])

    def test_nothing_to_take(self):
        self.check(("hwlat.one", "", "flakes"), suites=["tick_sched"])
        self.check(("hwlat.one", "um", "flakes"), flavours=["um"], of=["hwlat.one,x86_64"])


class Shipped(Folder):
    def load_shipped(self, *names):
        return load(SHIPPED, names, declared_here(), FLAVOURS)

    def tick_flakes(self, *cases):
        return str(self.write("my-flakes.txt", FLAKE + "\n".join(cases) + "\n"))

    def fix_lines(self):
        return witnesses(SHIPPED, [fix.id for fix in FIXES])

    def test_there_are_no_others(self):
        names = {path.name for path in SHIPPED.iterdir()}
        self.assertEqual({name for name in names for kind in KINDS
                          if name[:-len(f"-{kind}.txt")] in ALL}, names)

    def test_each_loads(self):
        for name in ALL:
            self.assertTrue(self.load_shipped(name).lines, name)
        self.load_shipped("hwlat-absent", "tick-absent", "um")
        self.load_shipped("hwlat-absent", "tick-atomic-gate", "um")

    def test_links(self):
        for path in sorted(SHIPPED.iterdir()):
            for link in re.findall(r"^# Link: (.*)$", path.read_text("utf-8"), re.M):
                if not link.startswith("https://lore.kernel.org/"):
                    self.assertTrue((ROOT / link).is_file(), f"{path.name}: {link}")

    def test_um_is_about_um(self):
        self.assertEqual({line.flavour for line in self.load_shipped("um").lines}, {"um"})

    def test_gate_passes_where_one_cpu_may_wait(self):
        gate = {line.case for line in self.load_shipped("tick-atomic-gate").lines}
        absent = {line.case for line in self.load_shipped("tick-absent").lines}
        self.assertLess(gate, absent)
        for suite in ("tick_sched", "jiffies-stampede"):
            self.assertIn(f"{suite}.at_most_one_cpu_waits", absent - gate)

    def test_um_leaves_witnesses(self):
        found = self.load_shipped("um")
        for flavours in (FLAVOURS, ("um",), ("x86_64",)):
            last_witness(found, self.fix_lines(), flavours, SUITES_KUNIT)
        last_witness(found, self.fix_lines(), FLAVOURS, SUITES)
        self.assertIsNone(found.of("tick_sched.held_lock_returns", "um"))

    def test_flakes_take_all_witnesses(self):
        mine = self.tick_flakes(*(line.case for line in self.fix_lines()["tick"]))
        line = self.refused(last_witness, self.load_shipped("um", mine), self.fix_lines(),
                            FLAVOURS, SUITES)
        self.assertTrue(line.startswith("no witness of fix tick is left in um, x86_64: "), line)
        self.assertIn(f"{mine}:7 (tick_sched.held_lock_returns)", line)

    def test_skips_and_flakes_take_all_together(self):
        mine = self.tick_flakes("tick_sched.held_lock_returns", "tick_sched.held_lock_retries,um")
        found = self.load_shipped("um", mine)
        line = self.refused(last_witness, found, self.fix_lines(), ("um",), SUITES_KUNIT)
        self.assertIn(f"{mine}:8 (tick_sched.held_lock_retries)", line)
        self.assertRegex(line, r" um-skips\.txt:\d+ \(tick_sched\.all_cpus_return\)")
        last_witness(found, self.fix_lines(), FLAVOURS, SUITES_KUNIT)


class Declared(Folder):
    KUNIT = """
/* KUNIT_CASE(in_a_comment), */
#define MY_CASE(name) \\
	KUNIT_CASE(in_a_macro)
static struct kunit_case some_cases[] = {
	KUNIT_CASE(one),
	// KUNIT_CASE(off),
	KUNIT_CASE_SLOW(two),
	KUNIT_CASE_PARAM(three,
			 gen_params),
	{}
};
static struct kunit_case more[] = { KUNIT_CASE( four ), { } };
static const char *text = "/*", quote = '"';
static struct kunit_suite some_suite = { .name = "hwlat", .test_cases = some_cases };
static struct kunit_suite more_suite = {
	.test_cases	= more,
	.name		= "tick_sched",	/* .name = "no" */
};
"""
    HARNESS = """
#include "../kselftest_harness.h"
#include "../../outside.h"
#include <missing.h>
#include "own.h"
#define TEST(in_a_macro) TEST(in_a_macro)
TEST(one)
TEST_F(fixture, two) { TEST_F_is_no(case); }
TEST_F_TIMEOUT(fixture,
	       three, 20)
TEST_SIGNAL(four, SIGABRT)
/*
TEST(off)
 */
XTEST(no)
"""

    def setUp(self):
        super().setUp()
        self.write("kunit/some_test.c", self.KUNIT)
        self.write("outside.h", "TEST(outside)\n")
        self.write("selftests/ftrace/own.h", '#include "parts/more.c"\n#include "own.h"\n'
                                             "TEST_F_SIGNAL(fixture, five, SIGABRT)\n")
        self.write("selftests/ftrace/parts/more.c", "TEST(six)\n")
        self.write("selftests/ftrace/hwlat_seqnum.c", self.HARNESS)
        self.write("selftests/timers/jiffies-stampede.c", "TEST(one)\n")

    def test_made_up_sources(self):
        self.assertEqual(declared(self.folder), {
            "hwlat": ("one", "two", "three"), "tick_sched": ("four",),
            "hwlat_seqnum": ("one", "two", "three", "four", "five", "six"),
            "jiffies-stampede": ("one",), "ftracetest": ("hwlat_percpu",)})

    def test_suite_is_missing(self):
        self.write("kunit/some_test.c", self.KUNIT.replace('"hwlat"', '"other"'))
        self.assertRegex(self.refused(declared, self.folder),
                         "^no file in .*/kunit declares suite hwlat; check out the whole project$")

    def test_program_is_missing(self):
        (self.folder / "selftests/timers/jiffies-stampede.c").unlink()
        self.assertRegex(self.refused(declared, self.folder), "^cannot read .*jiffies-stampede.c: "
                         "No such file or directory; check out the whole project$")

    def test_real_sources(self):
        found = declared(ROOT)
        self.assertEqual(set(found), set(SUITES))
        for suite, cases in found.items():
            self.assertTrue(cases, suite)

    def test_flavours(self):
        self.assertEqual(flavours_of("tick_sched"), FLAVOURS)
        self.assertEqual(flavours_of("ftracetest"), ("x86_64",))


if __name__ == "__main__":
    unittest.main()
