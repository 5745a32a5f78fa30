# SPDX-License-Identifier: GPL-2.0
"""Logs composed by hand from the KTAP specification, and what the gate reads out of them.

They go through the stand-in for kunit.py, and through the real one of each
tree in GATE_TEST_TREES (folders, separated by colons) or in the default cache.
"""

import io
import os
import unittest
from pathlib import Path
from typing import List
from unittest import mock

from gatelib.base import proc
from gatelib.base.workspace import Workspace, Progress
from gatelib.data.console import CONSOLE_BAD
from gatelib.data.trees import CACHE_NAME
from gatelib.results import kunit
from gatelib.results.evidence import Evidence, Result

from .project import ProjectCase

IDENT = "0123456789abcdef"
GOOD = """\
[    0.000000] Linux version 6.12.7 (gate@gate) (gcc) #0123456789abcdef SMP Thu Jan  1 00:00
[    0.100000] KTAP version 1
[    0.100000] 1..2
[    0.100000]     KTAP version 1
[    0.100000]     # Subtest: hwlat
[    0.100000]     # module: trace_hwlat_test
[    0.100000]     1..3
[    0.100000]     ok 1 first
[    0.100000]     # second: loads=101
[    0.100000]     # second: EXPECTATION FAILED at kernel/trace/trace_hwlat_test.c:7
[    0.100000]     not ok 2 second
[    0.100000]     ok 3 third # SKIP no watchpoints here
[    0.100000] # hwlat: pass:1 fail:1 skip:1 total:3
[    0.100000] not ok 1 hwlat
[    0.100000]     KTAP version 1
[    0.100000]     # Subtest: tick_sched
[    0.100000]     # module: tick_sched_test
[    0.100000]     1..1
[    0.100000]     ok 1 fourth
[    0.100000] ok 2 tick_sched
[    0.100000] reboot: Restarting system
"""
HEAD = GOOD[:GOOD.index("\n") + 1]
CASES = [Result("hwlat", "first", "PASS"),
         Result("hwlat", "second", "FAIL", "", Evidence({"loads": "101"}, True, "")),
         Result("hwlat", "third", "SKIP", "no watchpoints here"),
         Result("tick_sched", "fourth", "PASS")]
SUITES = ("hwlat", "tick_sched")


def real_trees() -> List[Path]:
    """Return kernel trees at hand."""
    named = os.environ.get("GATE_TEST_TREES")
    if named:
        return [Path(name) for name in named.split(":")]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return sorted(base.glob(f"{CACHE_NAME}/trees/*/src"))


class Collect(ProjectCase):
    def setUp(self):
        super().setUp()
        env = proc.child_env(self.cache, **self.env())
        self.work = Workspace(self.project, self.cache, self.out, 1, env, Progress(io.StringIO()))
        self.trees = [self.tree, *real_trees()]

    def collect(self, text, check):
        """Run check(results) on the log as each tree's kunit.py reads it."""
        log = self.temp / "console.log"
        log.write_text(text)
        for tree in self.trees:
            with self.subTest(tree=str(tree)):
                check(kunit.collect(log, tree, self.work, self.temp / "parse.log", SUITES,
                                      IDENT))

    def problem(self, text, wanted):
        self.collect(text, lambda got: self.assertTrue(
            any(wanted in problem.what for problem in got.problems), (wanted, got)))

    def test_good(self):
        def check(got):
            self.assertEqual(got.cases, CASES)
            self.assertEqual(got.problems, [])
        self.collect(GOOD, check)
        self.collect(GOOD.replace("[    0.100000] ", ""), check)
        self.collect(GOOD.replace("\n", "\r\n"), check)
        self.collect(GOOD.replace("[    0.100000] ", "[    0.100000][    T1] "), check)

    def test_talk_in_between(self):
        def check(got):
            self.assertEqual(got.cases, CASES)
            self.assertEqual(got.problems, [])
        first = "[    0.100000]     ok 1 first\n"
        self.collect(GOOD.replace(first, "[    0.1] clocksource: made up\n" + first), check)

    def test_cut_anywhere_is_never_clean(self):
        lines = GOOD.splitlines(True)
        self.trees = self.trees[:1] + self.trees[-1:]
        for end in range(1, len(lines) - 2):
            self.collect("".join(lines[:end]),
                         lambda got: self.assertNotEqual(got.problems, [], got))

    def test_line_lost_in_the_middle(self):
        self.problem(GOOD.replace("[    0.100000]     ok 1 first\n", ""), "kunit.py: ")
        self.problem(GOOD.replace("[    0.100000] ok 2 tick_sched\n", ""), "kunit.py: ")

    def test_empty(self):
        for text in ("", "\n", "nothing but talk\n", "KTAP version 1\n"):
            self.problem(HEAD + text, "no test ran")

    def test_another_kernel(self):
        for text, wanted in ((GOOD.replace(IDENT, "f" * 16), "another kernel ran: #ffff"),
                             (GOOD.replace(IDENT, IDENT + "0"), "another kernel ran"),
                             (GOOD.replace(HEAD, ""), "did not say which one it is"),
                             (GOOD + HEAD.replace(IDENT, "f" * 16), "another kernel ran")):
            def check(got, wanted=wanted):
                self.assertEqual(got.cases, [])
                self.assertEqual([problem.cause for problem in got.problems], ["harness"])
                self.assertIn(wanted, got.problems[0].what)
            self.collect(text, check)

    def test_crashed_case_is_an_error(self):
        fails = "# second: EXPECTATION FAILED at kernel/trace/trace_hwlat_test.c:7"
        for words in ("try faulted", "try timed out", "test case timed out",
                      "failed to initialize: -12", "try faulted: last line seen x.c:7",
                      "internal error occurred preventing test case from running: -4",
                      "test aborted during cleanup. continuing without cleaning up"):
            def check(got, words=words):
                self.assertEqual((got.cases[1].status, got.cases[1].reason), ("ERROR", words))
            self.collect(GOOD.replace(fails, f"# second: {words}"), check)

    def test_parser_without_an_end(self):
        # Found with the real ones: a result before its plan, and every line twice.
        self.trees = real_trees()[:1]
        early = HEAD + "KTAP version 1\nok 1 a\n1..1\n"
        twice = "".join(line + line for line in GOOD.splitlines(True))
        with mock.patch.object(kunit, "PARSE_SECONDS", 3):
            for text in (early, twice):
                self.collect(text, lambda got: self.assertNotEqual(got.problems, []))

    def test_stand_in_that_never_ends(self):
        (self.tree / "tools/testing/kunit/kunit.py").write_text("#!/bin/sh\nsleep 60\n")
        self.trees = [self.tree]
        with mock.patch.object(kunit, "PARSE_SECONDS", 1):
            self.collect(GOOD, lambda got: self.assertEqual(got.problems[0].cause, "harness"))

    def test_console_without_an_end(self):
        with mock.patch.object(kunit, "PARSE_BYTES", 100):
            self.problem(GOOD, "the console has more than")

    def test_log_is_missing(self):
        got = kunit.collect(self.temp / "nowhere.log", self.tree, self.work,
                              self.temp / "parse.log", SUITES, IDENT)
        self.assertNotEqual(got.problems, [])

    def test_zero_tests(self):
        self.problem(HEAD + "KTAP version 1\n1..0\n", "no test ran")

    def test_missing_suite(self):
        text = GOOD[:GOOD.index("not ok 1 hwlat")] + "not ok 1 hwlat\n"
        self.problem(text.replace("1..2", "1..1"), "suite tick_sched is not in the output")

    def test_missing_plans(self):
        self.problem(GOOD.replace("[    0.100000] 1..2\n", ""), "plan is missing")
        self.problem(GOOD.replace("[    0.100000]     1..1\n", ""), "plan is missing")

    def test_suite_fails_without_a_case(self):
        self.problem(GOOD.replace("ok 2 tick_sched", "not ok 2 tick_sched"),
                     "suite tick_sched failed")

    def test_case_with_parameters_is_as_good_as_its_worst(self):
        text = GOOD.replace("[    0.100000]     ok 1 first\n", """\
[    0.1] ok
        KTAP version 1
        # Subtest: first
        1..2
        ok 1 one
        not ok 2 two
    not ok 1 first
""").replace("[    0.100000] ", "").replace("[    0.1] ok\n", "")
        self.trees = real_trees()
        self.collect(text, lambda got: self.assertEqual(got.cases[0].status, "FAIL"))

    def test_failure_that_the_parser_loses(self):
        end = "[    0.100000] ok 2 tick_sched\n"
        for late in ("[    0.2] not ok 3 late\n", "[    0.2]     not ok 1 late\n"):
            self.problem(GOOD.replace(end, end + late), "kunit.py lost a failure: not ok")
        # A case with parameters, all of which are good.
        self.assertEqual(kunit.lost_problems(["        ok 1 only", "    not ok 1 fourth"], CASES),
                         ["kunit.py lost a failure: not ok 1 fourth"])
        self.problem(GOOD.replace(end, "[    0.2] Bail out! made up\n" + end), "gave up")

    def test_result_with_another_word(self):
        for word in ("TODO", "XFAIL", "skip"):
            self.problem(GOOD.replace("ok 1 first", f"ok 1 first # {word} made up"),
                         f"unknown result: ok 1 first # {word}")

    def test_splat(self):
        self.problem(GOOD.replace("[    0.100000]     ok 1 first", "[    0.1] BUG: made up\n"
                                  "[    0.100000]     ok 1 first"), "console: BUG: made up")


class Console(unittest.TestCase):
    BAD = (
        "BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "WARNING: CPU: 3 PID: 1 at kernel/time/tick-sched.c:99 tick_do_timer+0x1/0x2",
        "WARNING: possible circular locking dependency detected",
        "Oops: 0000 [#1] SMP",
        "Call Trace:",
        "------------[ cut here ]------------",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "watchdog: BUG: soft lockup - CPU#2 stuck for 26s! [kunit_try_catch:42]",
        "BUG: scheduling while atomic: kunit_try_catch/42/0x00000002",
        "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:1",
        "UBSAN: array-index-out-of-bounds in kernel/trace/trace_hwlat.c:1:2",
        "BUG: KASAN: slab-use-after-free in get_sample+0x1/0x2",
        "BUG: spinlock bad magic on CPU#0, swapper/0",
        "Kernel panic - not syncing: Attempted to kill init!",
        "INFO: task kunit_try_catch:42 blocked for more than 122 seconds.",
        "general protection fault, probably for non-canonical address",
        "list_add corruption. next->prev should be prev",
        "BUG kmalloc-64 (Not tainted): Redzone overwritten",
        "refcount_t: underflow; use-after-free.",
    )
    GOOD = (
        "Spectre V2 : WARNING: Unprivileged eBPF is enabled",
        "rcu: Hierarchical RCU implementation.",
        "    # held_lock_returns: EXPECTATION FAILED at kernel/time/tick-sched_test.c:1",
        "hwlat: disabled on CPU 3",
        "    ok 1 BUG_in_a_name",
    )

    def test_patterns(self):
        for line in self.BAD:
            self.assertEqual(kunit.bad_lines([line]), [line])
        self.assertEqual(kunit.bad_lines(self.GOOD), [])

    def test_no_pattern_matches_everything(self):
        self.assertFalse(any(kunit.bad_lines([text]) for text in ("", "ok", "x" * 80)))
        self.assertGreater(len(CONSOLE_BAD), 10)

    def test_terminal_is_safe(self):
        self.assertEqual(kunit.bad_lines(["BUG: \x1b[31mred"]), ["BUG: ?[31mred"])


if __name__ == "__main__":
    unittest.main()
