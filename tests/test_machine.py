# SPDX-License-Identifier: GPL-2.0
"""Children, lock, disk space, packages, apt, builds and boots, each on its own."""

import io
import os
import signal
import subprocess
import sys
import time
import unittest
from collections import namedtuple
from pathlib import Path
from unittest import mock

from gatelib.base import packages, proc
from gatelib.base.errors import MACHINE, UNUSABLE, VERDICT, GateError, Interrupted
from gatelib.base.workspace import Workspace, Progress
from gatelib.data.kernels import FLAVOURS
from gatelib.guests import boot
from gatelib.kernels import build
from gatelib.trees import aptsrc

from .project import FAKES, ProjectCase, write

Usage = namedtuple("Usage", "total used free")


class Children(ProjectCase):
    def run_shell(self, script, **kwargs):
        return proc.run(["sh", "-c", script], log=self.temp / "log", env=dict(os.environ), **kwargs)

    def test_log_and_status(self):
        self.assertEqual(self.run_shell("echo said; exit 7").status, 7)
        self.assertIn("said\n", (self.temp / "log").read_text())

    def test_timeout_kills_the_whole_group(self):
        done = self.run_shell("sleep 61 & echo $! > pid; wait", timeout=0.3, cwd=self.temp)
        self.assertTrue(done.timed_out)
        with self.assertRaises(ProcessLookupError):
            pid = int((self.temp / "pid").read_text())
            for _ in range(50):		# until init has taken it
                os.kill(pid, 0)
                time.sleep(0.1)

    def test_leftover_of_a_child_that_ended(self):
        self.run_shell("sleep 61 > /dev/null 2>&1 & echo $! > pid", cwd=self.temp)
        with self.assertRaises(ProcessLookupError):
            pid = int((self.temp / "pid").read_text())
            for _ in range(50):
                os.kill(pid, 0)
                time.sleep(0.1)

    def test_deaf_child_is_killed(self):
        with mock.patch.object(proc, "_GRACE", 0.3):
            done = self.run_shell("trap '' TERM; while :; do sleep 0.1; done", timeout=0.3)
        self.assertEqual(done.status, -signal.SIGKILL)

    def test_watch_stops(self):
        done = self.run_shell("sleep 61", watch=lambda seconds: seconds > 0.1)
        self.assertFalse(done.timed_out)
        self.assertLess(done.status, 0)

    def test_missing_program(self):
        with self.assertRaises(GateError) as caught:
            proc.run(["no-such-program"], log=self.temp / "log", env=dict(os.environ))
        self.assertEqual(caught.exception.status, MACHINE)
        self.assertIn("no-such-program", caught.exception.line())

    def test_environment(self):
        poison = {"MAKEFLAGS": "-j9", "ARCH": "arm", "GIT_DIR": "/x", "KBUILD_OUTPUT": "/x",
                  "CROSS_COMPILE": "x-", "KCONFIG_CONFIG": "/x", "PLAIN": "kept"}
        with mock.patch.dict(os.environ, poison):
            env = proc.child_env(self.cache)
        self.assertEqual(env.get("PLAIN"), poison.pop("PLAIN"))
        for name in poison:
            self.assertNotIn(name, env)
        for name in ("HOME", "TMPDIR"):
            self.assertTrue(env[name].startswith(str(self.cache)), name)

    def test_tail(self):
        log = self.temp / "log"
        log.write_bytes(b"one\n\n\xff\x1b[2Jtwo\nthree\n")
        self.assertEqual(proc.tail(log, 2), "\ufffd?[2Jtwo\nthree")
        self.assertEqual(proc.tail(self.temp / "nowhere"), "")


class Space(unittest.TestCase):
    def test_too_little(self):
        with mock.patch("shutil.disk_usage", return_value=Usage(9, 9, 2**30)):
            proc.need_space(Path("/"), 0.5, "little")
            with self.assertRaises(GateError) as caught:
                proc.need_space(Path("/"), 2.5, "unpacking a kernel")
        self.assertEqual(caught.exception.status, MACHINE)
        self.assertIn("needs 2.5 GiB and 1.0 GiB are free", caught.exception.line())

    def test_write_error(self):
        err = proc.from_os_error(OSError(28, "No space left on device", "/some/file"), Path("/"))
        self.assertEqual(err.status, MACHINE)
        self.assertIn("no space left on device", err.line())
        self.assertIn("/some/file", proc.from_os_error(OSError(5, "I/O error", "/some/file"),
                                                       Path("/")).line())


class Packages(ProjectCase):
    def ensure(self, missing, euid, fake=""):
        said = []
        env = self.env(fake, GATE_FAKE_MISSING=missing)
        with mock.patch.dict(os.environ, {"PATH": env["PATH"]}), \
                mock.patch("os.geteuid", return_value=euid):
            packages.ensure(FLAVOURS, self.out, env, said.append)
        return said

    def test_all_there(self):
        self.assertEqual(self.ensure("", 0), [])

    def test_root_installs(self):
        (said,) = self.ensure("bison", 0)
        self.assertIn("bison", said)
        self.assertIn("install -y --no-install-recommends bison",
                      (self.temp / "apt.log").read_text())

    def test_others_get_the_command(self):
        with self.assertRaises(GateError) as caught:
            self.ensure("bison", 1000)
        self.assertEqual(caught.exception.status, UNUSABLE)
        self.assertIn("apt-get install -y --no-install-recommends bison", caught.exception.line())

    def test_updates_and_tries_again_then_gives_up(self):
        with self.assertRaises(GateError) as caught:
            self.ensure("bison", 0, "apt-install-fails")
        self.assertEqual(caught.exception.status, MACHINE)
        log = (self.temp / "apt.log").read_text()
        self.assertEqual((log.count("install"), log.count("update")), (4, 1))

    def test_flavour_um_needs_no_qemu(self):
        self.assertNotIn("qemu-system-x86", [row.name for row in packages.needed(["um"])])
        self.assertIn("qemu-system-x86", [row.name for row in packages.needed(["x86_64"])])

    @unittest.skipUnless(os.geteuid() == 0, "only root installs without being asked")
    def test_one_command_installs_for_all_of_them(self):
        for name in ("xz-utils", "gnuplot-nox", "b4", "python3-sphinx"):
            (self.temp / "installed").unlink(missing_ok=True)
            done = self.gate("packages", GATE_FAKE_MISSING=name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(name, done.stdout)

    def test_another_system(self):
        def which(name):
            return None if name in ("dpkg-query", "bison") else f"/usr/bin/{name}"
        with mock.patch("shutil.which", which), self.assertRaises(GateError) as caught:
            packages.ensure(FLAVOURS, self.out, {}, print)
        self.assertEqual(caught.exception.status, UNUSABLE)
        self.assertIn("missing programs: bison", caught.exception.line())


class Mirror(unittest.TestCase):
    TARGETS = ("http://one/security trixie-security\nhttp://vendor/x stable\n"
               "http://two/debian trixie\nhttp://two/debian trixie-updates\nodd line here x\n")

    def test_own_release_wins(self):
        self.assertEqual(aptsrc.mirror(self.TARGETS, "trixie"), "http://two/debian")

    def test_suite_names_do(self):
        self.assertEqual(aptsrc.mirror("http://two/debian testing\n", "trixie"),
                         "http://two/debian")

    def test_none(self):
        self.assertIsNone(aptsrc.mirror("http://one/security trixie-security\n", "trixie"))
        self.assertIsNone(aptsrc.mirror("", "trixie"))


class Build(ProjectCase):
    def test_options(self):
        self.assertEqual(build.options("# talk\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=\"x\"\n"
                                       "CONFIG_D=n\n"),
                         {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": '"x"', "CONFIG_D": "n"})

    def test_later_fragment_wins(self):
        write(self.project, {"kunit/x86_64.config": "CONFIG_A=n\nCONFIG_B=y\n",
                             ".kunitconfig": "CONFIG_A=y\n"})
        self.assertEqual(build.merged(self.project, "x86_64"), {"CONFIG_A": "y", "CONFIG_B": "y"})

    def test_missing_fragment(self):
        (self.project / ".kunitconfig").unlink()
        with self.assertRaises(GateError) as caught:
            build.merged(self.project, "x86_64")
        self.assertIn(".kunitconfig", caught.exception.line())

    def test_what_a_killed_build_wrote_is_made_anew(self):
        write(self.temp / "b", {"old.o": "", "sub/new.o": "", ".gate-building": ""})
        os.utime(self.temp / "b" / "old.o", (1, 1))
        os.utime(self.temp / "b" / ".gate-building", (9, 9))
        with build._marked(self.temp / "b"):
            self.assertTrue((self.temp / "b/.gate-building").exists())
        self.assertTrue((self.temp / "b/old.o").exists())
        self.assertFalse((self.temp / "b/sub/new.o").exists())
        self.assertFalse((self.temp / "b/.gate-building").exists())

    def test_mark_stays_only_after_a_kill(self):
        (self.temp / "b").mkdir()
        for clean in (True, False):
            with self.assertRaises(Interrupted), build._marked(self.temp / "b"):
                err = Interrupted("SIGINT")
                err.clean = clean
                raise err
            self.assertEqual((self.temp / "b/.gate-building").exists(), not clean)


class Boot(ProjectCase):
    def test_argv(self):
        argv = boot.Machine(Path("/k"), "console=ttyS0", 8, [Path("/a"), Path("/b")]).argv()
        self.assertEqual([argv[i + 1] for i, word in enumerate(argv) if word == "-serial"],
                         ["file:/a", "file:/b"])
        self.assertEqual(argv[argv.index("-smp") + 1], "8")
        self.assertNotIn("-initrd", argv)

    def test_watch_sees_a_panic_in_pieces(self):
        log = self.temp / "console"
        watch = boot.Watch(log)
        self.assertFalse(watch(0.0))
        log.write_text("[    1.0] fine\n[    1.1] Kernel pan")
        self.assertFalse(watch(1.0))
        with open(log, "a", encoding="utf-8") as file:
            file.write("ic - not syncing: made up\nmore")
        self.assertFalse(watch(2.0))
        self.assertIn("made up", watch.panic)
        self.assertFalse(watch(3.0))
        self.assertTrue(watch(30.0))

    def test_hang(self):
        env = dict(proc.child_env(self.cache), **self.env("hang"))
        work = Workspace(self.project, self.cache, self.out, 1, env, Progress(io.StringIO()))
        kernel = self.temp / "kernel"
        kernel.write_text("read_once trylock")
        machine = boot.Machine(kernel, "", 2, [self.temp / "console"])
        with mock.patch.dict(os.environ, {"PATH": f"{FAKES}:{os.environ['PATH']}"}), \
                self.assertRaises(GateError) as caught:
            boot.run_guest(machine, work, self.temp / "qemu.log", 1.0)
        self.assertEqual((caught.exception.status, caught.exception.cause), (VERDICT, "hang"))
        self.assertIn("guest hang", caught.exception.line())
        self.assertIn("Subtest: hwlat", caught.exception.tail)

    def test_uml_hang(self):
        env = dict(proc.child_env(self.cache), **self.env("hang"))
        work = Workspace(self.project, self.cache, self.out, 1, env, Progress(io.StringIO()))
        tree = mock.Mock(src=self.tree, folder=self.temp)
        write(self.temp, {"build-um/linux": "read_once trylock"})
        with mock.patch.object(boot, "KUNIT_BOOT_SECONDS", -14), \
                self.assertRaises(GateError) as caught:
            boot.kunit_um(tree, work, self.temp / "console")
        self.assertIn("guest hang", caught.exception.line())


class Lines(unittest.TestCase):
    def test_one_plain_line_a_stage(self):
        out = io.StringIO()
        progress = Progress(out)
        with progress.stage("6.12: build"):
            progress.tick()
        with self.assertRaises(GateError), progress.stage("6.12: boot"):
            raise GateError(MACHINE, "made up")
        first, second = out.getvalue().splitlines()
        self.assertRegex(first, r"^6\.12: build \.\.\. [\d.]+ s, done$")
        self.assertRegex(second, r"^6\.12: boot \.\.\. [\d.]+ s, failed$")

    def test_live_on_a_terminal(self):
        out = io.StringIO()
        out.isatty = lambda: True
        progress = Progress(out)
        with progress.stage("x"):
            progress.tick()
        self.assertIn("\rx ... 0 s", out.getvalue())

    def test_error_is_one_line(self):
        err = GateError(MACHINE, "first\nsecond ", "do\n this", log=Path("a.log"))
        self.assertEqual(err.line(), "first second; do this; read a.log")


class Lock(ProjectCase):
    def test_second_waits_and_says_so(self):
        holder = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1])\n"
             "from pathlib import Path; from gatelib.base import proc\n"
             "with proc.CacheLock(Path(sys.argv[2]), print):\n"
             "    print('held', flush=True); sys.stdin.read()",
             str(self.project / "scripts"), str(self.cache)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.assertEqual(holder.stdout.readline(), b"held\n")
        said = []

        def say(line):
            said.append(line)
            holder.stdin.close()
        with proc.CacheLock(self.cache, say):
            pass
        holder.wait()
        holder.stdout.close()
        self.assertEqual(len(said), 1)
        self.assertIn(f"pid {holder.pid}", said[0])
        with proc.CacheLock(self.cache, said.append):
            self.assertEqual(len(said), 1)


if __name__ == "__main__":
    unittest.main()
