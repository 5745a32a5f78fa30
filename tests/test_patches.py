# SPDX-License-Identifier: GPL-2.0
"""Fix states and what the states of a tree are made of."""

import unittest
from pathlib import Path
from unittest import mock

from gatelib.base import proc
from gatelib.base.errors import UNUSABLE, GateError
from gatelib.data.trees import FIXES
from gatelib.trees.files import Blob, read_blob, write_blob
from gatelib.trees.patches import ABSENT, OURS, UPSTREAM, Patches, touched

from .project import (HWLAT, HWLAT_ABSENT, HWLAT_FIXED, TICK, TICK_ABSENT, TICK_OURS, TICK_SPLIT,
                      TICK_UPSTREAM, ProjectCase, diff, make_tree, write)


class PatchesCase(ProjectCase):
    """A made-up patches folder, and files as a tree would have them."""

    def setUp(self):
        super().setUp()
        self.cache.mkdir()
        self.load()

    def load(self):
        env = proc.child_env(self.cache)
        self.patches = Patches(self.project / "patches", env, self.cache / "tmp")

    def lookup(self, hwlat, tick, **more):
        files = {HWLAT: hwlat, TICK: tick, **more}
        return lambda name: Blob(files[name].encode()) if name in files else None

    def found(self, hwlat, tick):
        return self.patches.plan("as-is", self.lookup(hwlat, tick), "6.12").found

    def text(self, plan, name):
        return plan.files[name].data.decode() if plan.files[name] else None

    def fails(self, *args, **kwargs):
        with self.assertRaises(GateError) as caught:
            self.patches.plan(*args, **kwargs)
        self.assertEqual(caught.exception.status, UNUSABLE)
        return caught.exception.line()


class Find(PatchesCase):
    def test_absent(self):
        self.assertEqual(self.found(HWLAT_ABSENT, TICK_ABSENT), {"hwlat": ABSENT, "tick": ABSENT})

    def test_hwlat_reads_upstream_as_ours_has_the_same_bytes(self):
        self.assertEqual(self.found(HWLAT_FIXED, TICK_ABSENT)["hwlat"], UPSTREAM)

    def test_ours(self):
        self.assertEqual(self.found(HWLAT_FIXED, TICK_OURS)["tick"], OURS)

    def test_upstream(self):
        self.assertEqual(self.found(HWLAT_FIXED, TICK_UPSTREAM)["tick"], UPSTREAM)

    def test_set_on_top_of_upstream_does_not_make_it_absent(self):
        write(self.project / "patches" / "7.3", {
            "0001-tick-sched-Split-it.patch": diff((TICK, TICK_UPSTREAM, TICK_OURS))})
        self.load()
        plan = self.patches.plan("broken", self.lookup(HWLAT_FIXED, TICK_UPSTREAM), "7.3")
        self.assertEqual(plan.found["tick"], UPSTREAM)
        self.assertEqual(self.text(plan, TICK), TICK_ABSENT)
        # Ours in the place of upstream's comes out in two steps.
        plan = self.patches.plan("broken", self.lookup(HWLAT_FIXED, TICK_OURS), "7.3")
        self.assertEqual(plan.found["tick"], OURS)
        self.assertEqual(self.text(plan, TICK), TICK_ABSENT)

    def test_neither_names_file_and_hunk(self):
        line = self.fails("as-is", self.lookup("int rewritten;\n", TICK_ABSENT), "6.12")
        self.assertIn("hwlat", line)
        self.assertRegex(line, HWLAT + r", hunk at line \d+")

    def test_half_a_fix_is_neither(self):
        line = self.fails("fixed", self.lookup(HWLAT_FIXED, TICK_SPLIT), "6.12")
        self.assertRegex(line, TICK + r", hunk at line \d+")

    def test_missing_file_is_named(self):
        line = self.fails("as-is", lambda name: None, "6.12")
        self.assertIn(HWLAT, line)

    def test_no_fuzz(self):
        moved = HWLAT_ABSENT.replace("int line7;", "int other7;", 1)
        self.assertRegex(self.fails("as-is", self.lookup(moved, TICK_ABSENT), "6.12"), "hunk at")

    def test_works_inside_a_repository(self):
        # Git otherwise takes the paths of a patch to be below the repository's root.
        import subprocess
        subprocess.run(["git", "init", "-q", str(self.temp)], check=True)
        self.assertEqual(self.found(HWLAT_ABSENT, TICK_OURS), {"hwlat": ABSENT, "tick": OURS})


class Plan(PatchesCase):
    def test_each_state_from_each(self):
        wanted = {"broken": (HWLAT_ABSENT, TICK_ABSENT, {"hwlat": ABSENT, "tick": ABSENT}),
                  "fixed": (HWLAT_FIXED, TICK_OURS, {"tick": OURS}),
                  "upstream": (HWLAT_FIXED, TICK_UPSTREAM, {"tick": UPSTREAM})}
        for state, (hwlat_text, tick_text, present) in wanted.items():
            for tick in (TICK_ABSENT, TICK_OURS, TICK_UPSTREAM):
                for hwlat in (HWLAT_ABSENT, HWLAT_FIXED):
                    plan = self.patches.plan(state, self.lookup(hwlat, tick), "6.12")
                    self.assertEqual(self.text(plan, HWLAT), hwlat_text)
                    self.assertEqual(self.text(plan, TICK), tick_text)
                    self.assertEqual({**plan.present, **present}, plan.present)

    def test_as_is_changes_nothing(self):
        plan = self.patches.plan("as-is", self.lookup(HWLAT_FIXED, TICK_UPSTREAM), "6.12")
        self.assertEqual(self.text(plan, HWLAT), HWLAT_FIXED)
        self.assertEqual(self.text(plan, TICK), TICK_UPSTREAM)
        self.assertIsNone(plan.files["kernel/trace/trace_hwlat_test.c"])

    def test_second_form_of_upstream(self):
        reverse = self.project / "patches/reverse"
        first, second = FIXES[1].reverse
        (reverse / second).write_text((reverse / first).read_text())
        (reverse / first).write_text(diff((TICK, "int unlike;\n", "int all;\n")))
        self.load()
        plan = self.patches.plan("upstream", self.lookup(HWLAT_FIXED, TICK_ABSENT), "6.1")
        self.assertEqual(self.text(plan, TICK), TICK_UPSTREAM)

    def test_upstream_that_does_not_fit(self):
        for name in FIXES[1].reverse:
            (self.project / "patches/reverse" / name).write_text(
                diff((TICK, "int unlike;\n", "int all;\n")))
        self.load()
        line = self.fails("upstream", self.lookup(HWLAT_FIXED, TICK_ABSENT), "6.12")
        self.assertIn("mainline's form of fix tick does not fit", line)

    def test_fix_that_mainline_has_not(self):
        tick = FIXES[1]._replace(reverse=())
        with mock.patch("gatelib.trees.patches.FIXES", (FIXES[0], tick)):
            self.load()
            line = self.fails("upstream", self.lookup(HWLAT_FIXED, TICK_ABSENT), "6.12")
        self.assertIn("fix tick has no upstream form; use --state fixed", line)

    def test_set_of_the_series_comes_first(self):
        write(self.project / "patches" / "6.1", {
            "0001-tracing-Fix-it.patch": diff((HWLAT, HWLAT_ABSENT, HWLAT_FIXED)),
            "0002-tick-sched-Use-it.patch": diff((TICK, TICK_ABSENT, TICK_OURS + "6.1\n")),
            "0003-more.patch": diff(("kernel/time/tick-sched_test.c", None, "6.1\n"))})
        self.load()
        for series, extra in (("6.1", "6.1\n"), ("6.12", "")):
            plan = self.patches.plan("fixed", self.lookup(HWLAT_FIXED, TICK_ABSENT), series)
            self.assertEqual(self.text(plan, TICK), TICK_OURS + extra)


class Folder(PatchesCase):
    def test_sorting(self):
        (each,) = self.patches.sets
        self.assertEqual([path.name[:4] for path in each.fixes["tick"]], ["0002", "0003"])
        self.assertEqual([path.name[:4] for path in each.tests], ["0004"])

    def test_touched(self):
        self.assertEqual(touched([self.project / "patches/reverse/hwlat.patch"]), {HWLAT})
        self.assertIn("kernel/trace/trace_hwlat_test.c", self.patches.touched())

    def test_incomplete(self):
        (self.project / "patches/reverse" / FIXES[0].reverse[0]).unlink()
        with self.assertRaises(GateError) as caught:
            self.load()
        self.assertIn(FIXES[0].reverse[0], caught.exception.line())

    def test_write_blob_leaves_equal_files_alone(self):
        path = make_tree(self.temp / "other") / HWLAT
        before = path.stat().st_mtime_ns
        self.assertFalse(write_blob(path, Blob(HWLAT_FIXED.encode())))
        self.assertEqual(path.stat().st_mtime_ns, before)
        self.assertTrue(write_blob(path, Blob(b"new", True)))
        self.assertEqual(read_blob(path), Blob(b"new", True))
        self.assertTrue(write_blob(path, None))
        self.assertIsNone(read_blob(path))
        self.assertIsNone(read_blob(Path(self.temp / "nowhere" / "file")))


if __name__ == "__main__":
    unittest.main()
