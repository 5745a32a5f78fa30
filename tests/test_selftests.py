# SPDX-License-Identifier: GPL-2.0
"""Selftests in guests: the whole gate on a made-up tree, and its parts."""

import io
import json
import os
import unittest
from unittest import mock

from gatelib.base import proc
from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, VERDICT, GateError
from gatelib.base.workspace import Workspace, Progress
from gatelib.commands import run
from gatelib.data.tests import GUESTS, PROGRAMS, Guest, Item
from gatelib.guests import boot, initramfs, selftests
from gatelib.results import ktap
from gatelib.results.evidence import Evidence, Result

from .project import FAKES, TICK_UPSTREAM, ProjectCase, make_tree, write

PROGRAM = Item("made_up", "timers/made-up")
PLAIN = Item("plain", "ftrace/plain", case="only", passed=r"^# of passed: +1$",
             failed=r"^# of failed: +1$")
GOOD = """\
KTAP version 1
1..3
# kernel=#0123456789abcdef SMP Thu Jan  1 00:00:00 UTC 1970
# cpus=64
ok 1 guest/cpus-online
# uptime_ms=7
# Subtest: timers/made-up
  TAP version 13
  1..3
  # Starting 3 tests from 1 test cases.
  #  RUN           fix.first ...
  # waiters=1
  # longest_wait_us=20
  # waiters=2
  ok 1 fix.first
  #  RUN           fix.second ...
  # waiters=63
  # made-up.c:7:second:Expected 0 (0) == 1 (1)
  not ok 2 fix.second
  #  RUN           fix.third ...
  ok 3 fix.third # SKIP no module
  # Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0
not ok 2 timers/made-up # exit=1
# uptime_ms=8
# Subtest: ftrace/plain
  === made up ===
  # samples=7
  # of passed:  1
  # of failed:  0
ok 3 ftrace/plain
# gate-init: end items=3 failed=1
"""
IDENT = "0123456789abcdef"
CASES = [Result("made_up", "first", "PASS", "",
                Evidence({"waiters": "1", "longest_wait_us": "20"}, False, "")),
         Result("made_up", "second", "FAIL", "", Evidence({"waiters": "63"}, True, "")),
         Result("made_up", "third", "SKIP", "no module"),
         Result("plain", "only", "PASS", "", Evidence({"samples": "7"}, False, ""))]


class Ktap(unittest.TestCase):
    def read(self, text):
        return ktap.read(text, [PROGRAM, PLAIN], IDENT)

    def problem(self, text, wanted):
        got = self.read(text)
        self.assertTrue(any(wanted in problem.what for problem in got.problems),
                        (wanted, got.problems))
        return got

    def test_good(self):
        for text in (GOOD, GOOD.replace("\n", "\r\n")):
            got = self.read(text)
            self.assertEqual((got.cases, got.problems), (CASES, []))
        self.assertEqual([(each.case, each.values) for each in got.figures],
                         [("", {"kernel": "#0123456789abcdef SMP Thu Jan  1 00:00:00 UTC 1970",
                               "cpus": "64", "uptime_ms": "7"}),
                          ("first", {"waiters": "1", "longest_wait_us": "20"}),
                          ("first", {"waiters": "2"}), ("second", {"waiters": "63"}),
                          ("only", {"samples": "7"})])

    def test_nameless_skip_of_an_older_harness(self):
        got = self.read(GOOD.replace("ok 3 fix.third # SKIP", "ok 3 # SKIP"))
        self.assertEqual((got.cases, got.problems), (CASES, []))

    def test_cut_anywhere_is_never_clean(self):
        for end in range(len(GOOD) - 1):
            self.assertNotEqual(self.read(GOOD[:end]).problems, [], GOOD[:end])

    def test_any_line_lost_is_seen_or_does_not_matter(self):
        lines = GOOD.splitlines(True)
        for number, line in enumerate(lines):
            got = self.read("".join(lines[:number] + lines[number + 1:]))
            talk = line.strip().startswith(("# ", "TAP", "===")) and "gate-init" not in line
            self.assertTrue(got.problems or talk, line)
            if not got.problems:
                self.assertEqual([case[:4] for case in got.cases if case.suite == "made_up"],
                                 [case[:4] for case in CASES[:3]], line)

    def test_empty(self):
        for text in ("", "\n"):
            self.problem(text, "no results")

    def test_plan(self):
        self.problem(GOOD.replace("1..3\n# kernel", "# kernel"), "the guest's test plan")
        self.problem(GOOD.replace("  1..3\n", ""), "the test plan is missing")
        self.problem(GOOD.replace("  1..3\n", "  1..4\n"), "3 of 4 results")
        self.problem(GOOD.replace("  1..3\n", "  1..3\n  1..3\n"), "more than one test plan")

    def test_another_kernel(self):
        for text, wanted in ((GOOD.replace(IDENT, "f" * 16), "another kernel ran: #ffff"),
                             (GOOD.replace(f"# kernel=#{IDENT} SMP", "# uptime_ms=1"),
                              "did not say which one it is")):
            got = self.problem(text, wanted)
            self.assertEqual((got.cases, [each.cause for each in got.problems]), ([], ["harness"]))

    def test_crashed_case_is_an_error(self):
        said = "made-up.c:7:second:Expected 0 (0) == 1 (1)"
        for words in ("Test terminated unexpectedly by signal 11", "Test terminated by timeout",
                      "Test ended in some other way [127]", "Failed to wait for PID 7 (errno: 4)"):
            got = self.read(GOOD.replace(said, f"fix.second: {words}"))
            self.assertEqual((got.cases[1].status, got.cases[1].reason), ("ERROR", words))

    def test_red_without_assertion_or_figure(self):
        said = "  # made-up.c:7:second:Expected 0 (0) == 1 (1)\n"
        self.assertFalse(self.read(GOOD.replace(said, "")).cases[1].evidence.asserted)
        self.assertEqual(self.read(GOOD.replace("  # waiters=63\n", "")).cases[1].evidence.figures,
                         {})

    def test_cut_in_a_case_names_it(self):
        self.problem(GOOD[:GOOD.index("  not ok 2")], "end line is missing")
        self.problem(GOOD.replace("  ok 3 fix.third # SKIP no module\n", ""), "cut off in third")

    def test_zero(self):
        start = GOOD.index("  1..3")
        text = GOOD[:start] + "  1..0\n" + GOOD[GOOD.index("not ok 2 timers"):]
        self.problem(text, "no test ran")

    def test_order_and_doubles(self):
        self.problem(GOOD.replace("  not ok 2 fix", "  not ok 3 fix"), "out of order")
        self.problem(GOOD.replace("fix.second\n  ok", "fix.first\n  ok")
                     .replace("not ok 2 fix.second", "not ok 2 fix.first"), "out of order")
        self.problem(GOOD.replace("ok 3 ftrace", "ok 2 ftrace"), "not in order")

    def test_number_that_is_none(self):
        many = "9" * 5000
        self.problem(GOOD.replace("  ok 1 fix", f"  ok {many} fix"), "unknown result")
        self.problem(GOOD.replace("\nok 3 ftrace", f"\nok {many} ftrace"), "unknown line")
        self.problem(GOOD.replace("  1..3\n", f"  1..{many}\n"), "plan is missing")
        self.problem(GOOD.replace("items=3", f"items={many}"), "end line is missing")

    def test_noise(self):
        self.problem(GOOD.replace("# uptime_ms=8", "BUG: made up"), "unknown line")
        self.problem(GOOD.replace("  ok 1 fix.first", "  ok fix.first"), "unknown result")
        self.problem(GOOD.replace("  # Totals", "  Bail out! made up\n  # Totals"), "Bail out!")

    def test_end_must_agree(self):
        self.problem(GOOD.replace("failed=1", "failed=0"), "does not agree")
        self.problem(GOOD.replace("items=3", "items=2"), "does not agree")

    def test_program_that_ended_badly(self):
        for note, wanted in (("timeout=300", "stopped after 300 s"), ("signal=11", "signal 11"),
                             ("exit=127", "could not be started")):
            self.problem(GOOD.replace("exit=1\n", note + "\n"), wanted)
        self.problem(GOOD.replace("not ok 2 timers/made-up # exit=1", "ok 2 timers/made-up")
                     .replace("failed=1", "failed=0"), "which its cases do not explain")

    def test_plain_program_must_say_so(self):
        for text in (GOOD.replace("  # of passed:  1\n", ""),
                     GOOD.replace("# of failed:  0", "# of failed:  1"),
                     GOOD.replace("ok 3 ftrace/plain", "not ok 3 ftrace/plain # exit=1")):
            got = self.read(text)
            self.assertEqual(got.cases[-1][:3], ("plain", "only", "ERROR"))
        failed = (GOOD.replace("passed:  1", "passed:  0").replace("failed:  0", "failed:  1")
                  .replace("ok 3 ftrace/plain", "not ok 3 ftrace/plain # exit=1")
                  .replace("failed=1", "failed=2"))
        got = self.read(failed)
        self.assertEqual((got.cases[-1].status, got.problems), ("FAIL", []))

    def test_another_program_than_wanted(self):
        self.problem(GOOD.replace("timers/made-up", "timers/other"), "unexpected result 2")

    def test_cpus(self):
        self.problem(GOOD.replace("ok 1 guest", "not ok 1 guest").replace("failed=1", "failed=2"),
                     "not all CPUs came online")

    def test_timeline_is_that_of_the_first_hold(self):
        text = GOOD.replace("  # waiters=2\n", "  # timeline=0 1\n  # timeline=9 0\n  # waiters=2\n"
                            "  # timeline=0 5\n")
        self.assertEqual(self.read(text).timeline, [(0, 1), (9, 0)])


class Good(ProjectCase):
    def test_witnesses_and_figures(self):
        done = self.gate("run", "--tree", str(self.tree), "--only", "selftests", "--accel", "tcg")
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""), done.stdout)
        self.assertRegex(done.stdout, r"jiffies-stampede .* red as it must be: 3\n")
        self.assertRegex(done.stdout, r"broken +jiffies-stampede\.held_lock\S+ +64 +63 +1235 ")
        self.assertNotIn(" um ", done.stdout)
        data = json.loads((self.out / "results.json").read_text())
        self.assertEqual(len(data["kernels"]), 2)
        figures = data["kernels"][0]["figures"]
        self.assertIn({"suite": "ftracetest", "case": "hwlat_percpu", "values": {"samples": "9"}},
                      figures)

    def test_both_stages_of_one_build(self):
        done = self.run_one()
        self.assertEqual(done.returncode, HOLDS, done.stdout)
        self.assertRegex(done.stdout, r"tick_sched .* ok")
        self.assertRegex(done.stdout, r"jiffies-stampede .* ok")
        self.assertEqual(done.stdout.count("x86_64: build ..."), 1)

    def test_mainline_as_it_is(self):
        tree = make_tree(self.temp / "seven", tick=TICK_UPSTREAM, version="7.3")
        words = ("run", "--tree", str(tree), "--only", "selftests", "--state")
        done = self.gate(*words, "as-is")
        self.assertEqual(done.returncode, VERDICT, done.stdout)
        self.assertIn("63 of 64 CPUs waited for the lock; if that is known of this tree: "
                      "--expect tick-absent or --expect tick-atomic-gate", done.stdout)
        done = self.gate(*words, "as-is", "--expect", "tick-atomic-gate")
        self.assertEqual(done.returncode, HOLDS, done.stdout)
        for state in ("broken", "fixed", "upstream"):
            self.assertEqual(self.gate(*words, state).returncode, HOLDS, state)

    def test_only_kunit_builds_no_selftests(self):
        done = self.run_one("selftest-build-error")
        self.assertEqual(done.returncode, VERDICT)
        done = self.gate("run", "--tree", str(self.tree), "--only", "kunit", "--smp", "4",
                         fake="selftest-build-error")
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))


class Bad(ProjectCase):
    """What can go wrong with selftests, and the status each gets."""

    def ends(self, fake, status, wanted, state="fixed", *words):
        done = self.gate("run", "--tree", str(self.tree), "--only", "selftests", "--accel", "tcg",
                         "--state", state, *words, fake=fake)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, text)
        self.assertTrue([line for line in text.splitlines() if wanted in line], text)
        return done

    def counted(self, done):
        self.assertRegex(done.stdout.splitlines()[-1], r"^gate: \d+ passed, [1-9]\d* failed, \d+ ")

    def test_builds(self):
        done = self.ends("selftest-build-error", VERDICT, "the selftests could not be built")
        self.assertIn("expected made-up before thing", done.stderr)
        self.counted(done)
        self.counted(self.ends("init-build-error", MACHINE, "the guest's init could not be built"))

    def test_binary_is_missing(self):
        self.counted(self.ends("selftest-missing", VERDICT, "no selftest ftrace/hwlat_"))

    def test_binary_of_an_earlier_build_is_not_taken(self):
        self.ends("", HOLDS, "0 failed")
        self.ends("selftest-missing", VERDICT, "no selftest ftrace/hwlat_")

    def test_initramfs_larger_than_memory(self):
        self.counted(self.ends("selftest-fat", UNUSABLE, "is too much for a guest"))

    def test_guest_dies(self):
        self.counted(self.ends("selftest-panic", VERDICT, "guest panic"))
        self.counted(self.ends("qemu-error", MACHINE, "could not do it"))

    def test_incomplete_results(self):
        for fake, wanted in (
                ("selftest-empty", "wrote no results"), ("selftest-no-end", "end line is missing"),
                ("selftest-no-plan", "guest's test plan"), ("selftest-truncated", "cut off"),
                ("selftest-no-inner-plan", "the test plan is missing"),
                ("selftest-case-lost", "results"), ("selftest-zero", "no test ran"),
                ("selftest-noise", "unexpected result"), ("selftest-timeout", "was stopped after"),
                ("selftest-gone", "could not be started: ./"),
                ("selftest-cpus", "not all CPUs came online"),
                ("selftest-splat", "console: BUG: made up"),
                ("selftest-skips", "was skipped (no test_lockup.ko)"),
                ("selftest-fails", "jiffies_catch_up fails: 63 of 64")):
            for state in ("fixed", "broken"):
                with self.subTest(fake=fake, state=state):
                    self.counted(self.ends(fake, VERDICT, wanted, state))

    def test_witness_that_proves_nothing(self):
        for fake, wanted in (("selftest-toothless", "has lost its teeth"),
                             ("selftest-signal", "Test terminated unexpectedly by signal 11"),
                             ("selftest-case-timeout", "Test terminated by timeout"),
                             ("selftest-no-assertion", "without a failed assertion"),
                             ("selftest-no-figure", "without a measured figure")):
            with self.subTest(fake=fake):
                self.counted(self.ends(fake, VERDICT, wanted, "broken"))

    def test_build_that_was_not_meant(self):
        self.ends("", HOLDS, "0 failed")
        self.ends("", HOLDS, "0 failed", "broken")
        for fake, state, wanted in (
                ("stale-image", "fixed", "another kernel ran: #"),
                ("stale-module", "fixed", "test_lockup.ko is of build "),
                ("stale-program", "fixed", "is of build 0123456789abcdef instead of "),
                ("selftest-other-kernel", "broken", "another kernel ran: #0123456789abcdef"),
                ("selftest-no-version", "broken", "did not say which one it is")):
            with self.subTest(fake=fake):
                # A build of another state lies there now.
                self.ends("", HOLDS, "0 failed", {"fixed": "broken"}.get(state, "fixed"))
                done = self.ends(fake, MACHINE, wanted, state)
                self.assertIn(": harness: ", done.stdout)
                self.counted(done)

    def refused(self, wanted, *words, **extra):
        done = self.gate("run", "--tree", str(self.tree), *words, **extra)
        self.assertEqual(done.returncode, UNUSABLE, done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(wanted, done.stderr)
        self.assertNotIn("passed", done.stdout)

    def test_calls(self):
        self.refused("need at least 4 CPUs", "--smp", "3")
        self.refused("does not run in --flavour um", "--only", "selftests", "--flavour", "um")
        self.refused("invalid choice: 'all'", "--only", "all")
        self.refused("invalid choice: 'xen'", "--accel", "xen")

    def test_cpus(self):
        self.refused("this is QEMU 7; give a smaller --smp", "--smp", "256")
        self.refused("its version is unknown", "--smp", "256", GATE_FAKE_QEMU="x")
        done = self.gate("run", "--tree", str(self.tree), "--only", "selftests", "--smp", "301",
                         "--state", "fixed", "--accel", "tcg", GATE_FAKE_QEMU="10.0.2")
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertIn("the kernel is built for 300 CPUs", done.stdout)
        done = self.gate("run", "--tree", str(self.tree), "--only", "selftests", "--smp", "300",
                         "--state", "fixed", "--accel", "tcg", GATE_FAKE_QEMU="10.0.2")
        self.assertEqual(done.returncode, HOLDS, done.stdout)


class Parts(ProjectCase):
    def setUp(self):
        super().setUp()
        fakes = mock.patch.dict(os.environ, {"PATH": f"{FAKES}:{os.environ['PATH']}"})
        fakes.start()
        self.addCleanup(fakes.stop)
        self.said = io.StringIO()
        self.tree_ = mock.Mock(src=self.tree, folder=self.temp / "built")
        write(self.tree_.folder, {
            "build-x86_64/arch/x86/boot/bzImage": f"#{IDENT}\nread_once trylock", "init": "init",
            "build-x86_64/.config": "CONFIG_NR_CPUS=300\n",
            "build-x86_64/include/config/kernel.release": "6.12.7\n",
            "build-x86_64/lib/test_lockup.ko": f"Build ID: {IDENT}\n",
            "build-x86_64/usr/gen_init_cpio": '#!/bin/sh\ncat "$1"\n'})
        (self.tree_.folder / "build-x86_64/usr/gen_init_cpio").chmod(0o755)
        self.parts = initramfs.Parts(self.tree_, self.temp / "installed",
                                     self.tree_.folder / "init", IDENT, IDENT)
        write(self.temp / "installed", {item.program: f"Build ID: {IDENT}\n" for guest in GUESTS
                                        for item in guest.items})

    def work(self, fake=""):
        env = dict(proc.child_env(self.cache), **self.env(fake))
        self.out.mkdir(exist_ok=True)
        return Workspace(self.project, self.cache, self.out, 1, env, Progress(self.said))

    def test_kvm_is_tried_once(self):
        for wanted, fake, accel in (("auto", "", "kvm"), ("kvm", "", "kvm"),
                                    ("auto", "kvm-broken", "tcg,thread=single"),
                                    ("auto", "selftest-no-end", "tcg,thread=single"),
                                    ("tcg", "", "tcg,thread=single")):
            with self.subTest(wanted=wanted, fake=fake), \
                    mock.patch.object(selftests, "_KVM", self.temp), \
                    mock.patch.object(selftests, "run_guest", wraps=boot.run_guest) as booted:
                choice = selftests.Accelerator(wanted)
                for _ in range(2):
                    self.assertEqual(choice.choose("single", self.parts, self.work(fake)), accel)
                self.assertEqual(booted.call_count, 0 if wanted == "tcg" else 1)

    def test_no_kvm_here(self):
        with mock.patch.object(selftests, "_KVM", self.temp / "nowhere"):
            self.assertEqual(selftests.Accelerator("auto").choose("multi", self.parts, self.work()),
                             "tcg,thread=multi")

    def test_kvm_wanted_and_broken(self):
        with self.assertRaises(GateError) as caught:
            selftests.Accelerator("kvm").choose("single", self.parts, self.work("kvm-broken"))
        self.assertEqual(caught.exception.status, MACHINE)
        self.assertIn("Assertion made_up failed", caught.exception.line())

    def test_hang(self):
        guest = Guest("made-up", (GUESTS[0].items[0],), 2, "single")
        with mock.patch.object(selftests, "GUEST_SECONDS", 1), \
                mock.patch.object(selftests, "GUEST_SECONDS_PER_CPU", 0), \
                self.assertRaises(GateError) as caught:
            selftests.run(guest, 2, "tcg", self.parts, self.work("selftest-hang"), self.out / "x")
        self.assertEqual((caught.exception.status, caught.exception.cause), (VERDICT, "hang"))
        self.assertIn("guest hang", caught.exception.line())

    def test_starved(self):
        # Stopped for all the wall time that a guest with nothing gets.
        guest = Guest("made-up", (GUESTS[0].items[0],), 2, "single")
        with mock.patch.object(selftests, "GUEST_SECONDS", 0.4), \
                mock.patch.object(selftests, "GUEST_SECONDS_PER_CPU", 0), \
                self.assertRaises(GateError) as caught:
            selftests.run(guest, 2, "tcg", self.parts, self.work("stopped"), self.out / "x")
        self.assertEqual((caught.exception.status, caught.exception.cause), (MACHINE, "host"))
        self.assertIn("starved or stopped", caught.exception.line())

    def test_many_cpus(self):
        few = selftests.machine(self.parts, 255, "tcg", self.out / "i", (), "").argv()
        many = selftests.machine(self.parts, 256, "tcg", self.out / "i", (), "").argv()
        self.assertNotIn("-device", few)
        self.assertIn("intel-iommu,intremap=on,eim=on", many)
        self.assertTrue(many[many.index("-cpu") + 1].endswith(",+x2apic"))

    def test_every_compiled_program_has_its_build_checked(self):
        for guest in GUESTS:
            for item in guest.items:
                for name in (item.program, *item.files):
                    if (FAKES.parent.parent / "selftests" / f"{name}.c").is_file():
                        self.assertIn(name, PROGRAMS)

    def test_name_with_a_space(self):
        write(self.temp / "installed", {"ftrace/a b": ""})
        with self.assertRaises(GateError) as caught:
            initramfs.pack(self.parts, (Item("x", "ftrace/a b"),), self.out / "i", 512,
                           self.work())
        self.assertEqual(caught.exception.status, UNUSABLE)

    def test_suites_are_those_of_the_items(self):
        self.assertEqual(run.SUITES_SELFTESTS, ("jiffies-stampede", "hwlat_seqnum", "ftracetest"))


if __name__ == "__main__":
    unittest.main()
