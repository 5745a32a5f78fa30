# SPDX-License-Identifier: GPL-2.0
"""gate boot and gate plot, on a made-up tree with made-up tools."""

import subprocess
import unittest

from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, VERDICT
from gatelib.data.figures import PLOT_NAME

from .project import ProjectCase, contents


class Boot(ProjectCase):
    def boot(self, *words, fake="", **extra):
        return self.gate("boot", "--tree", str(self.tree), "--state", "broken", "--accel", "tcg",
                         *words, fake=fake, **extra)

    def test_selftests_on_the_console(self):
        before = contents(self.tree)
        done = self.boot()
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))
        self.assertIn("gate.cpus=64", done.stdout)
        self.assertIn("gate.results=ttyS0 gate.run=timers/jiffies-stampede,ftrace/", done.stdout)
        self.assertEqual(contents(self.tree), before)
        self.assertEqual([path.name for path in self.out.glob("*boot*")
                          if path.suffix not in (".log",)], [])

    def test_shell_on_the_terminal(self):
        done = subprocess.run(
            self.argv("boot", "--tree", str(self.tree), "--state", "fixed", "--shell", "--smp",
                      "2", "--accel", "tcg"), env=self.env(), text=True, input="typed\n",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))
        self.assertIn("gate.shell", done.stdout)
        self.assertNotIn("gate.run", done.stdout)
        self.assertIn("typed\n", done.stdout)

    def test_cache_is_free_meanwhile(self):
        guest = subprocess.Popen(
            self.argv("boot", "--tree", str(self.tree), "--state", "fixed", "--shell", "--accel",
                      "tcg"), env=self.env(), text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while "Ctrl-A X" not in guest.stdout.readline():
            self.assertIsNone(guest.poll())
        self.assertEqual(self.gate("state", "--tree", str(self.tree)).returncode, HOLDS)
        self.assertIsNone(guest.poll())
        guest.communicate("", timeout=60)
        self.assertEqual(guest.returncode, HOLDS)

    def test_bad(self):
        for fake, words, status, wanted in (
                ("qemu-error", (), MACHINE, "QEMU ended with status 1"),
                ("build-error", (), VERDICT, "the build failed"),
                ("other-kernel", (), MACHINE, "another kernel ran: #0123456789abcdef"),
                ("selftest-missing", (), VERDICT, "no selftest"),
                ("", ("--smp", "256"), UNUSABLE, "give a smaller --smp"),
                ("", ("--state", "odd"), UNUSABLE, "invalid choice")):
            with self.subTest(fake=fake, words=words):
                done = self.boot(*words, fake=fake)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(wanted, done.stderr)
        done = self.gate("boot", "--tree", str(self.tree))
        self.assertEqual(done.returncode, UNUSABLE)
        self.assertIn("--state", done.stderr)


class Plot(ProjectCase):
    def plot(self, *words, fake=""):
        return self.gate("plot", "--tree", str(self.tree), "--accel", "tcg", *words, fake=fake)

    def test_picture(self):
        done = self.plot()
        self.assertEqual((done.returncode, done.stderr), (HOLDS, ""))
        self.assertIn(f"drew {self.out / PLOT_NAME}.svg", done.stdout)
        self.assertEqual((self.out / f"{PLOT_NAME}-broken.dat").read_text(),
                         "# ms since the lock was taken, CPUs waiting from then on\n"
                         "0.000 0\n10.000 63\n20.000 0\n")
        script = (self.out / f"{PLOT_NAME}.svg").read_text()
        self.assertIn("without a fix: 63 of 64", script)
        self.assertIn("with mainline's gate: 63 of 64", script)	# the stand-in's is red, too
        self.assertIn("with trylock: 1 of 64", script)

    def test_bad(self):
        for fake, words, status, wanted in (
                ("gnuplot-error", (), MACHINE, "gnuplot could not draw"),
                ("gnuplot-nothing", (), MACHINE, "gnuplot drew nothing"),
                ("selftest-truncated", (), VERDICT, "cut off"),
                ("selftest-other-kernel", (), MACHINE, "another kernel ran"),
                ("selftest-skips", ("--smp", "3"), UNUSABLE, "no number of at least 4"),
                ("", ("--smp", "256"), UNUSABLE, "give a smaller --smp")):
            with self.subTest(fake=fake, words=words):
                done = self.plot(*words, fake=fake)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(wanted, done.stderr)
                self.assertFalse((self.out / f"{PLOT_NAME}.svg").exists())


if __name__ == "__main__":
    unittest.main()
