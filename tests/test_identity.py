# SPDX-License-Identifier: GPL-2.0
"""Which build is meant: hashes, version lines, build IDs, and the shape of results.json."""

import io
import json
import os
import subprocess
import unittest
from unittest import mock

from gatelib.base import load, proc
from gatelib.base.errors import MACHINE, GateError
from gatelib.base.load import Load
from gatelib.base.workspace import Progress, Workspace
from gatelib.kernels import identity
from gatelib.trees.content import content_hash
from gatelib.trees.files import Blob

from .project import ProjectCase, SCRIPTS, write

IDENT = "0123456789abcdef"
SCHEMA = SCRIPTS / "gatelib/results/results.schema.json"


class Hashes(ProjectCase):
    def setUp(self):
        super().setUp()
        self.work = Workspace(self.project, self.cache, self.out, 1, proc.child_env(self.cache),
                              Progress(io.StringIO()))
        self.tree_ = mock.Mock(content=lambda: "tree")
        self.files = {"kernel/a.c": Blob(b"a"), "tools/testing/selftests/b.c": Blob(b"b")}

    def kernel(self, flavour="x86_64"):
        return identity.kernel_id(self.tree_, self.files, flavour, self.work)

    def changes(self, change, kernel=True, tests=True):
        before = self.kernel(), identity.tests_id(self.tree_, self.files, self.work)
        change()
        after = self.kernel(), identity.tests_id(self.tree_, self.files, self.work)
        self.assertEqual((before[0] != after[0], before[1] != after[1]), (kernel, tests))

    def test_everything_counts(self):
        self.assertRegex(self.kernel(), r"^[0-9a-f]{16}$")
        self.assertNotEqual(self.kernel("um"), self.kernel("x86_64"))
        self.changes(lambda: self.files.update({"kernel/a.c": Blob(b"c")}), tests=False)
        self.changes(lambda: self.files.update({"kernel/a.c": None}), tests=False)
        self.changes(lambda: self.files.update({"tools/testing/selftests/b.c": Blob(b"c")}),
                     kernel=False)
        self.changes(lambda: setattr(self.tree_, "content", lambda: "other"))
        self.changes(lambda: write(self.project, {".kunitconfig": "CONFIG_OTHER=y\n"}), tests=False)
        with mock.patch.object(identity, "toolchain", return_value="gcc 99"):
            self.assertNotEqual(self.kernel(), IDENT)

        def other_compiler():
            patch = mock.patch.object(identity, "toolchain", return_value="gcc 99")
            patch.start()
            self.addCleanup(patch.stop)
        self.changes(other_compiler)

    def test_content(self):
        known = self.temp / "known.json"

        def now(*leave_out):
            return content_hash(self.tree, known, leave_out)
        first = now()
        self.assertEqual(now(), first)
        known.write_text("damaged")
        self.assertEqual(now(), first)
        other = self.tree / "kernel/other.c"
        times = (other.stat().st_atime_ns, other.stat().st_mtime_ns)
        other.write_text("int otter;\n")		# as long, and as old
        os.utime(other, ns=times)
        self.assertNotEqual(now(), first)
        self.assertEqual(now("kernel/other.c"), now("kernel/other.c"))
        before = now("kernel/other.c")
        other.write_text("int any;\n")
        self.assertEqual(now("kernel/other.c"), before)
        (self.tree / "link").symlink_to("one")
        with_link = now()
        (self.tree / "link").unlink()
        (self.tree / "link").symlink_to("two")
        self.assertNotEqual(now(), with_link)
        write(self.tree, {os.fsdecode(b"odd\xff\nname"): ""})
        self.assertEqual(len(now()), 16)


class Running(unittest.TestCase):
    LINE = f"Linux version 6.12.7 (gate@gate) (gcc (x) 12, ld) #{IDENT} SMP Thu Jan  1 00:00:00"

    def test_version(self):
        self.assertEqual(identity.running(["x", self.LINE]), f"#{IDENT} SMP Thu Jan  1 00:00:00")
        self.assertIsNone(identity.running(["x", f"# {self.LINE}"]))
        self.assertEqual(identity.complaint(identity.running([self.LINE]), IDENT), "")
        for other in (None, "", f"#{IDENT}0 SMP", f"#{IDENT[:-1]} SMP", f"{IDENT} SMP", "#1 SMP"):
            self.assertNotEqual(identity.complaint(other, IDENT), "")


class Elf(ProjectCase):
    def test_build_id(self):
        source, program = self.temp / "a.c", self.temp / "a"
        source.write_text("int main(void) { return 0; }\n")
        env = dict(os.environ)
        for flags, good in ((f"-Wl,--build-id=0x{IDENT}", True), ("-Wl,--build-id=sha1", False),
                            ("-Wl,--build-id=none", False)):
            subprocess.run(["gcc", "-static", flags, "-o", program, source], check=True)
            self.assertEqual(identity.is_of(program, IDENT, env), good)
            if not good:
                with self.assertRaises(GateError) as caught:
                    identity.check_elf(program, IDENT, env)
                self.assertEqual((caught.exception.status, caught.exception.cause),
                                 (MACHINE, "harness"))
        self.assertFalse(identity.is_of(self.temp / "nowhere", IDENT, env))


class Shape(ProjectCase):
    """results.json against its schema, by somebody else's validator."""

    def check(self, done):
        where = self.out / "results.json"
        self.assertTrue(where.exists(), done.stdout + done.stderr)
        said = subprocess.run(["/usr/bin/python3", "-m", "jsonschema", "-i", str(where),
                               str(SCHEMA)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        if "No module named jsonschema" in said.stderr:
            self.skipTest("python3-jsonschema is not installed: type scripts/gate packages")
        self.assertEqual((said.returncode, said.stdout), (0, ""), said.stderr)
        return json.loads(where.read_text())

    def test_good_and_bad_runs(self):
        words = ("run", "--tree", str(self.tree), "--state", "as-is", "--accel", "tcg")
        data = self.check(self.gate(*words, "--expect", "tick-absent"))
        self.assertEqual([kernel["failures"] for kernel in data["kernels"]], [[], []])
        self.assertRegex(data["kernels"][1]["build"], r"^[0-9a-f]{16}$")
        self.assertIn("qemu-system-x86_64", data["kernels"][1]["commands"]["stampede"])
        for fake, cause in (("fails", "test"), ("splat", "splat"), ("panic", "panic"),
                            ("build-error", "build"), ("selftest-build-error", "selftest-build"),
                            ("other-kernel", "harness"), ("qemu-error", "host"),
                            ("selftest-splat", "splat"), ("config-lost", "build")):
            with self.subTest(fake=fake):
                data = self.check(self.gate(*words, fake=fake))
                causes = {each["cause"] for kernel in data["kernels"]
                          for each in kernel["failures"]}
                self.assertIn(cause, causes)

    def test_schema_refuses(self):
        self.check(self.run_one())
        data = json.loads((self.out / "results.json").read_text())
        for change in ({"format": "1.0"}, {"status": 7}, {"odd": 1}, {"started": "today"}):
            (self.out / "results.json").write_text(json.dumps({**data, **change}))
            with self.assertRaises(AssertionError):
                self.check(mock.Mock(stdout="", stderr=""))


class HostLoad(ProjectCase):
    def follow(self, script, seconds):
        child = subprocess.Popen(["sh", "-c", script], start_new_session=True)
        try:
            follower = Load(child.pid)
            try:
                child.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                pass
            return follower.sample()
        finally:
            proc.stop(child)

    def test_sleeper_is_nobody_s_victim(self):
        usage = self.follow("sleep 60", 0.5)
        self.assertGreater(usage.fair, 0.4)
        self.assertEqual(usage.stopped, 0)

    def test_stopped_child_has_no_time(self):
        usage = self.follow("kill -STOP $$", 0.5)
        self.assertEqual(usage.fair, 0)
        self.assertGreater(usage.stopped, 0.4)
        self.assertLess(usage.share, 0.5)

    def test_busy_child_has_what_it_got(self):
        usage = self.follow("while :; do :; done", 1)
        self.assertGreater(usage.cpu, 0)
        # What it waited for a CPU is not its own.
        self.assertLessEqual(usage.fair, 1.5 * usage.cpu + 0.5)

    def test_own_threads_are_not_others(self):
        # One second on two CPUs: four threads share both, or have one CPU between them.
        for ran, got in ((0.5, 1.0), (0.25, 0.5)):
            with mock.patch.object(load, "_members", lambda group: [1]), \
                    mock.patch.object(load.time, "monotonic", mock.Mock(side_effect=(10.0, 11.0))), \
                    mock.patch.object(load, "_threads", lambda pid, ran=ran: [
                        (tid, ran, 1.0 - ran) for tid in range(4)]), \
                    mock.patch.object(load.os, "sched_getaffinity", lambda pid: {0, 1}):
                usage = Load(1).sample()
            self.assertAlmostEqual(usage.share, got)
            self.assertAlmostEqual(usage.fair, got)

    def test_output_without_an_end(self):
        with mock.patch.object(proc, "HELPER_BYTES", 1000), \
                mock.patch.object(proc, "_SAMPLE", 0.1):
            for run in (lambda: proc.run(["yes"], log=self.temp / "log", env=dict(os.environ)),
                        lambda: proc.capture(["yes"], env=dict(os.environ))):
                with self.assertRaises(GateError) as caught:
                    run()
                self.assertIn("yes wrote more than", caught.exception.line())

    def test_helper_without_an_end(self):
        with mock.patch.object(proc, "_SAMPLE", 0.1), self.assertRaises(GateError) as caught:
            proc.capture(["sleep", "60"], env=dict(os.environ), timeout=0.5)
        self.assertIn("sleep did not end within", caught.exception.line())


if __name__ == "__main__":
    unittest.main()
