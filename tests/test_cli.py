# SPDX-License-Identifier: GPL-2.0
"""The whole gate through its command line, on a made-up tree with made-up tools."""

import json
import os
import signal
import subprocess
import time
import unittest

from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, VERDICT

from .project import (HWLAT, HWLAT_ABSENT, TICK, TICK_OURS, ProjectCase, contents,
                      make_deb, make_tree)


class Good(ProjectCase):
    def test_all_states_two_flavours(self):
        before = contents(self.tree)
        done = self.gate("run", "--tree", str(self.tree), "--state", "as-is", "--state", "broken",
                         "--state", "fixed", "--state", "upstream", "--expect", "tick-absent")
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))
        last = done.stdout.splitlines()[-1]
        self.assertRegex(last, r"^gate: \d+ passed, 0 failed, \d+ skipped$")
        self.assertIn("came with hwlat upstream, tick absent", done.stdout)
        self.assertIn("as-is expects tick-absent", done.stdout)
        self.assertEqual(contents(self.tree), before)
        data = json.loads((self.out / "results.json").read_text())
        self.assertEqual((data["status"], len(data["kernels"])), (0, 8))
        self.assertEqual(last, "gate: {passed} passed, {failed} failed, {skipped} skipped"
                         .format(**data))

    def test_as_is_is_judged_by_what_it_does(self):
        # Known to no patch, and not looked at by any.
        (self.tree / TICK).write_text("int rewritten;\n" + TICK_OURS)
        done = self.run_one(state="as-is")
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""), done.stdout)
        (self.tree / HWLAT).write_text("int rewritten;\n" + HWLAT_ABSENT)
        done = self.run_one(state="as-is")
        self.assertEqual(done.returncode, VERDICT)
        self.assertIn("--expect hwlat-absent", done.stdout)
        done = self.gate("run", "--tree", str(self.tree), "--state", "as-is", "--flavour", "x86_64",
                         "--expect", "hwlat-absent")
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""), done.stdout)

    def test_tests_that_the_tree_has_are_said(self):
        done = self.run_one(state="fixed")
        self.assertNotIn("has these tests already", done.stdout)
        (self.tree / "kernel/time/tick-sched_test.c").write_text("int older;\n")
        done = self.run_one(state="fixed")
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""), done.stdout)
        self.assertIn("has these tests already; using ours in their place, as --tests ours says",
                      done.stdout)

    def test_tests_of_the_tree(self):
        done = self.gate("run", "--tree", str(self.tree), "--state", "as-is", "--tests", "tree")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (UNUSABLE, 1))
        self.assertIn("use --tests ours", done.stderr)

    def test_state(self):
        (self.tree / TICK).write_text(TICK_OURS)
        done = self.gate("state", "--tree", str(self.tree))
        self.assertEqual((done.returncode, done.stdout), (HOLDS, "hwlat: upstream\ntick: ours\n"))

    def test_nothing_outside_cache_and_out(self):
        home = self.temp / "home"
        home.mkdir()
        before = set(contents(self.project)) | set(contents(self.tree))
        self.assertEqual(self.run_one(HOME=str(home)).returncode, HOLDS)
        self.assertEqual(list(home.iterdir()), [])
        self.assertEqual(set(contents(self.project)) | set(contents(self.tree)), before)

    def test_tree_whose_name_is_not_utf8(self):
        tree = self.temp / os.fsdecode(b"lin\xffux")
        self.tree.rename(tree)
        for words in (("run", "--only", "kunit"), ("state",)):
            done = self.gate(*words, "--tree", str(tree), PYTHONIOENCODING="ascii")
            self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))

    def test_git_repository(self):
        (self.tree / "kernel" / "script.sh").write_text("#!/bin/sh\n")
        (self.tree / "kernel" / "script.sh").chmod(0o755)
        target = self.temp / "repo"
        done = self.gate("tree", "--tree", str(self.tree), "--state", "broken",
                         "--git", str(target))
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))

        def git(*words):
            return subprocess.run(["git", "-C", str(target), *words], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
        self.assertEqual(git("status", "--short"), "")
        self.assertEqual(len(git("log", "--oneline").splitlines()), 1)
        self.assertEqual(git("show", f"HEAD:{HWLAT}"), HWLAT_ABSENT)
        self.assertNotIn("_test.c", git("ls-files"))
        self.assertIn("100755", git("ls-files", "-s", "kernel/script.sh"))
        done = self.gate("tree", "--tree", str(self.tree), "--git", str(target))
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertIn("is there already", done.stderr)


class BadCall(ProjectCase):
    def refused(self, wanted, *words, status=UNUSABLE, **kwargs):
        done = self.gate(*words, **kwargs)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(wanted, done.stderr)
        self.assertNotIn("passed", done.stdout)

    def test_unknown_option(self):
        self.refused("--bogus", "run", "--bogus")
        self.refused("--stat", "run", "--stat", "fixed")	# no guessing at abbreviations
        self.refused("sideways", "run", "--state", "sideways")
        self.refused("arm64", "run", "--flavour", "arm64")
        self.refused("walk", "walk")

    def test_numbers(self):
        for words in (("--smp", "1"), ("--smp", "many"), ("--jobs", "0"), ("--jobs", "-3")):
            self.refused("is no number of at least", "run", f"{words[0]}={words[1]}")

    def test_trees(self):
        self.refused("is no kernel tree", "run", "--tree", str(self.temp))
        self.refused("is no folder", "run", "--tree", str(self.temp / "nowhere"))
        self.refused("is no folder", "run", "--tree", "")	# not the current folder
        self.refused("is no folder", "run", "--tree", "6.12\n")
        old = make_tree(self.temp / "old", version="5.10")
        self.refused("older than 6.1", "run", "--tree", str(old))
        self.refused("older than 6.1", "state", "--tree", "5.10")

    def test_one_bad_tree_of_two_stops_before_any_work(self):
        self.refused("is no folder", "run", "--tree", str(self.tree), "--tree", "/nowhere")

    def test_tree_that_no_patch_fits(self):
        (self.tree / TICK).write_text("int rewritten;\n")
        for command in ("run", "state"):	# broken and fixed need the patches
            done = self.gate(command, "--tree", str(self.tree))
            self.assertEqual(done.returncode, UNUSABLE)
            self.assertRegex(done.stderr, TICK + r", hunk at line \d+")
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertNotIn("passed", done.stdout)

    def test_folders(self):
        (self.temp / "file").write_text("")
        self.cache = self.temp / "file"
        self.refused("cannot make --cache", "run", "--tree", str(self.tree))
        self.cache = self.temp / "with space"
        self.refused("space", "run", "--tree", str(self.tree))
        self.cache = self.temp / "with'quote"
        self.refused("has a ' in its path", "run", "--tree", str(self.tree))
        self.cache = self.tree / "cache"
        self.refused("lies in the tree", "run", "--tree", str(self.tree))
        self.assertFalse(self.cache.exists())
        self.cache = self.temp / "cache"
        self.refused("lies in the tree", "tree", "--tree", str(self.tree), "--git",
                     str(self.tree / "repo"))
        self.out = self.temp / "loop"
        self.out.symlink_to("loop")
        self.refused("cannot make --out", "run", "--tree", str(self.tree))
        self.out = self.temp / "file" / "out"
        self.refused("cannot make --out", "run", "--tree", str(self.tree))

    def test_results_of_an_earlier_run_are_gone(self):
        self.assertEqual(self.run_one().returncode, HOLDS)
        self.refused("is no folder", "run", "--tree", "/nowhere")
        self.assertFalse((self.out / "results.json").exists())

    def test_tree_that_cannot_be_read(self):
        (self.tree / "kernel/trace/trace_hwlat_test.c").mkdir()
        self.refused("trace_hwlat_test.c: Is a directory", "state", "--tree", str(self.tree))

    def test_output_that_goes_nowhere(self):
        env = self.env()
        env.pop("PYTHONUNBUFFERED", None)
        for words in (["state", "--tree", str(self.tree)], ["run", "--tree", str(self.tree)]):
            with open("/dev/full", "w") as full:
                done = subprocess.run(self.argv(*words), env=env, text=True, stdout=full,
                                      stderr=subprocess.PIPE, timeout=100, check=False)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (MACHINE, 1))
            self.assertIn("No space left", done.stderr)
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run(self.argv(*words), env=env, text=True, stdout=writer,
                                  stderr=subprocess.PIPE, timeout=100, check=False)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr),
                             (MACHINE, "gate: cannot write to the standard output: Broken pipe; "
                              "see where it leads to\n"))

    def test_expectations(self):
        words = ("run", "--tree", str(self.tree), "--state", "as-is", "--expect")
        self.refused("there is no expectation odd", *words, "odd")
        self.refused("no regular file", *words, "../tick-absent-fails.txt")
        mine = self.temp / "mine-fails.txt"
        mine.write_text("# made up\n# Link: here\nhwlat.no_such_case\n")
        self.refused(f"{mine}:3", *words, str(mine))
        self.refused("add --state as-is", "run", "--tree", str(self.tree), "--expect", "um")

    def test_place_for_the_tests_is_gone_or_there_twice(self):
        name = "kernel/time/Kconfig"
        for text, wanted in (("config X\n\tbool\n", "HIGH_RES_TIMERS"),
                             ("config HIGH_RES_TIMERS\n\tbool\n" * 2, "HIGH_RES_TIMERS")):
            (self.tree / name).write_text(text)
            self.refused(name, "run", "--tree", str(self.tree), "--state", "as-is")
            self.refused(wanted, "run", "--tree", str(self.tree), "--state", "as-is")

    def test_incomplete_project(self):
        (self.project / "patches" / "reverse" / "hwlat.patch").unlink()
        self.refused("hwlat.patch", "state", "--tree", str(self.tree))


class BadKernel(ProjectCase):
    """What can go wrong with one kernel, and the status each gets."""

    def ends(self, fake, status, wanted, **kwargs):
        done = self.run_one(fake, **kwargs)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, text)
        lines = [line for line in text.splitlines() if wanted in line]
        self.assertTrue(lines, text)
        return done

    def counted(self, done):
        self.assertRegex(done.stdout.splitlines()[-1], r"^gate: \d+ passed, [1-9]\d* failed, \d+ ")

    def test_build_error(self):
        for flavour in ("x86_64", "um"):
            done = self.ends("build-error", VERDICT, "the build failed", flavour=flavour)
            self.assertIn("tick-sched.c:7:1: error: expected made-up", done.stderr)
            self.assertIn("build.log", done.stdout)
            self.counted(done)

    def test_build_makes_nothing(self):
        self.counted(self.ends("build-nothing", VERDICT, "the build made no"))

    def test_no_space_in_a_build(self):
        done = self.ends("build-no-space", MACHINE, "no space left on device")
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertEqual(self.run_one().returncode, HOLDS)	# nothing was lost

    def test_option_that_kconfig_drops(self):
        self.counted(self.ends("config-lost", UNUSABLE, "does not take CONFIG_KUNIT=y"))

    def test_panic(self):
        done = self.ends("panic", VERDICT, "guest panic")
        self.assertIn("---[ end of it", done.stderr)
        self.counted(done)

    def test_panic_of_uml(self):
        self.counted(self.ends("panic", VERDICT, "guest panic", flavour="um"))

    def test_qemu_error(self):
        self.counted(self.ends("qemu-error", MACHINE, "could not do it"))

    def test_more_cpus_than_qemu_has(self):
        done = self.gate("run", "--tree", str(self.tree), "--smp", "300")
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("this is QEMU 7; give a smaller --smp", done.stderr)

    def test_output_that_proves_nothing(self):
        for fake, wanted in (
                ("empty", "did not say which one it is"), ("no-ktap", "no test ran"),
                ("zero", "no test ran"),
                ("truncated", "suite tick_sched is not in the output"),
                ("missing-suite", "suite tick_sched is not in the output"),
                ("no-plan", "plan is missing"), ("no-suite-plan", "plan is missing"),
                ("suite-exit", "failed although none of its cases did"),
                ("splat", "console: WARNING: CPU: 1"),
                ("skips", "was skipped (not in this flavour)"),
                ("fails", "fails: 7 of 8 CPUs"), ("case-lost", "did not run at all")):
            with self.subTest(fake=fake):
                status = MACHINE if fake == "empty" else VERDICT
                self.counted(self.ends(fake, status, wanted))

    def test_parser_dies(self):
        self.counted(self.ends("parser-dies", MACHINE, "harness: kunit.py gave no results"))

    def test_witness_that_proves_nothing(self):
        for fake, wanted in (("toothless", "has lost its teeth"),
                             ("no-figure", "without a measured figure"),
                             ("no-assertion", "without a failed assertion"),
                             *((words, words) for words in (
                                 "try faulted", "try timed out", "failed to initialize: -12",
                                 "internal error occurred during test case cleanup: -1"))):
            with self.subTest(fake=fake):
                self.counted(self.ends(fake, VERDICT, wanted, state="broken"))

    def test_case_that_runs_where_it_is_to_be_skipped(self):
        done = self.ends("runs-skipped", VERDICT, "remove the line um-skips.txt:", flavour="um")
        self.counted(done)

    def test_another_kernel(self):
        for flavour in ("x86_64", "um"):
            for fake, wanted in (("other-kernel", "another kernel ran: #0123456789abcdef"),
                                 ("no-banner", "did not say which one it is")):
                done = self.ends(fake, MACHINE, wanted, flavour=flavour)
                self.assertIn(": harness: ", done.stdout)

    def test_splat_in_broken(self):
        self.counted(self.ends("splat", VERDICT, "console: WARNING: CPU: 1", state="broken"))

    def test_one_bad_kernel_does_not_hide_the_others(self):
        done = self.gate("run", "--tree", str(self.tree), "--state", "fixed", fake="qemu-error")
        self.assertEqual(done.returncode, MACHINE)
        self.assertRegex(done.stdout, r"fixed +um +hwlat .* ok")
        self.counted(done)


class Apt(ProjectCase):
    def setUp(self):
        super().setUp()
        self.deb = make_deb(self.temp, self.tree, "6.12", "6.12.7-1")

    def state(self, series="6.12", **extra):
        return self.gate("state", "--tree", series, **extra)

    def asked(self):
        return (self.temp / "apt.log").read_text()

    def test_own_apt_and_then_the_cache(self):
        for _ in range(2):
            done = self.state(GATE_FAKE_DEB=str(self.deb))
            self.assertEqual((done.returncode, done.stdout),
                             (HOLDS, "hwlat: upstream\ntick: absent\n"), done.stderr)
        self.assertEqual(self.asked().count("download"), 1)

    def test_run_names_the_package(self):
        done = self.gate("run", "--tree", "6.12", "--state", "fixed", GATE_FAKE_DEB=str(self.deb))
        self.assertEqual(done.returncode, HOLDS, done.stderr)
        self.assertIn("6.12: 6.12.7 from linux-source-6.12 6.12.7-1", done.stdout)

    def test_suite_of_its_own(self):
        done = self.state(GATE_FAKE_DEB=str(self.deb), GATE_FAKE_SUITE="trixie")
        self.assertEqual(done.returncode, HOLDS, done.stderr)
        sources = (self.cache / "apt/trixie/sources.list").read_text()
        self.assertRegex(sources,
                         r"^deb (\[signed-by=\S+\] )?http://mirror\.example/debian trixie main$")
        self.assertNotIn("install", self.asked())

    def test_no_such_package(self):
        done = self.state("9.9")
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertIn("Debian has no package linux-source-9.9", done.stderr)

    def test_no_network(self):
        done = self.state(fake="apt-offline")
        self.assertEqual(done.returncode, MACHINE)
        self.assertIn("could not download linux-source-6.12", done.stderr)

    def test_missing_packages_as_another_user(self):
        if os.geteuid() == 0:
            self.skipTest("root installs; see test_machine.Packages")
        done = self.run_one(GATE_FAKE_MISSING="bison")
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertIn("sudo apt-get install -y --no-install-recommends bison", done.stderr)


class Interrupt(ProjectCase):
    def start(self):
        """Start a gate in a slow build; return it and the compiler's process id."""
        gate = subprocess.Popen(
            self.argv("run", "--tree", str(self.tree), "--state", "fixed", "--flavour", "x86_64"),
            env=self.env("build-slow"), text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        pid = self.temp / "pid"
        while gate.poll() is None and not (pid.exists() and pid.read_text()):
            time.sleep(0.05)
        return gate, int(pid.read_text())

    def gone(self, pid):
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)
        return False

    def test_ends_at_once_and_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            (self.temp / "pid").unlink(missing_ok=True)
            gate, pid = self.start()
            gate.send_signal(number)
            out, err = gate.communicate(timeout=30)
            self.assertEqual((gate.returncode, err), (MACHINE, "gate: interrupted\n"))
            self.assertNotIn("passed", out)
            self.assertTrue(self.gone(pid))
        self.assertEqual(self.run_one().returncode, HOLDS)	# the cache is usable

    def test_killed_gate_takes_its_build_along(self):
        gate, pid = self.start()
        gate.kill()
        gate.communicate(timeout=30)
        self.assertTrue(self.gone(pid))
        self.assertEqual(self.run_one().returncode, HOLDS)

    def test_second_gate_waits(self):
        first, _ = self.start()
        second = subprocess.Popen(
            self.argv("run", "--tree", str(self.tree), "--state", "fixed", "--flavour", "x86_64"),
            env=self.env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = second.stdout.readline()
        self.assertIn(f"another gate (pid {first.pid})", line)
        self.assertIsNone(second.poll())
        first.terminate()
        first.communicate(timeout=30)
        out, err = second.communicate(timeout=60)
        self.assertEqual((second.returncode, err), (HOLDS, ""), out)


if __name__ == "__main__":
    unittest.main()
