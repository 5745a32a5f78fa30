# SPDX-License-Identifier: GPL-2.0
"""Trees in the cache: mirrors, packages, switching."""

import io
import os
import subprocess
import time
import unittest

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace, Progress
from gatelib.trees import tree as trees
from gatelib.trees.files import Blob

from .project import HWLAT, TICK, ProjectCase, contents, make_deb, make_tree, write


class TreeCase(ProjectCase):
    def setUp(self):
        super().setUp()
        self.out.mkdir()
        self.cache.mkdir()
        self.work = Workspace(self.project, self.cache, self.out, 1, proc.child_env(self.cache),
                           Progress(io.StringIO()))

    def unusable(self, spec):
        with self.assertRaises(GateError) as caught:
            trees.open_tree(str(spec), self.cache)
        self.assertEqual(caught.exception.status, UNUSABLE)
        return caught.exception.line()


class Open(TreeCase):
    def test_version(self):
        self.assertEqual(trees.read_version(self.tree), ("6.12", "6.12.7"))

    def test_no_folder(self):
        self.assertIn("no folder", self.unusable(self.temp / "nowhere"))

    def test_no_kernel(self):
        self.assertIn("no kernel tree", self.unusable(self.temp))
        write(self.temp / "odd", {"Makefile": "VERSION = x\n"})
        self.assertIn("no kernel tree", self.unusable(self.temp / "odd"))

    def test_incomplete_kernel(self):
        (self.tree / TICK).unlink()
        self.assertIn(TICK, self.unusable(self.tree))

    def test_too_old(self):
        self.assertIn("older than 6.1", self.unusable(make_tree(self.temp / "old", version="5.15")))
        self.assertIn("older than 6.1", self.unusable("6.0"))

    def test_any_series_may_be_a_package(self):
        self.assertIsInstance(trees.open_tree("9.10", self.cache), trees.PackageTree)


class Mirror(TreeCase):
    def prepare(self, touched=(HWLAT,)):
        tree = trees.open_tree(str(self.tree), self.cache)
        tree.prepare(self.work, set(touched))
        return tree

    def test_user_tree_is_only_read(self):
        before = contents(self.tree)
        tree = self.prepare()
        tree.switch({HWLAT: Blob(b"changed\n"), "new/file.c": Blob(b"added\n")})
        self.assertEqual((tree.src / HWLAT).read_text(), "changed\n")
        self.prepare()
        self.assertEqual(contents(self.tree), before)
        self.assertEqual((tree.src / "kernel/other.c").read_text(), "int other;\n")

    def test_products_stay_behind_without_git(self):
        write(self.tree, {".gitignore": "*.o\n/vmlinux\n.*\n!.gitignore\n", "kernel/other.o": "x",
                          "vmlinux": "x", ".config": "x", "include/odd [1]*.o": "x",
                          "include/vmlinux": "kept"})
        src = self.prepare().src
        self.assertEqual((src / "include/vmlinux").read_text(), "kept")
        for name in ("kernel/other.o", "vmlinux", ".config", "include/odd [1]*.o", ".git"):
            self.assertFalse((src / name).exists(), name)

    def test_unpacked_source_package(self):
        write(self.tree, {".gitignore": "*.o\n/vmlinux\n.*\n/*\n!/debian/\n", "kernel/other.o": "x",
                          "vmlinux": "x", ".config": "x"})
        src = self.prepare().src
        self.assertTrue((src / "kernel/other.c").exists())
        self.assertTrue((src / "Makefile").exists())
        for name in ("kernel/other.o", "vmlinux", ".config"):
            self.assertFalse((src / name).exists(), name)

    def test_products_stay_behind_with_git(self):
        write(self.tree, {".gitignore": "*.o\n", "kernel/other.o": "x", "kernel/kept.o": "x"})
        subprocess.run(["git", "init", "-q", str(self.tree)], check=True)
        subprocess.run(["git", "-C", str(self.tree), "add", "-f", "kernel/kept.o"], check=True)
        src = self.prepare().src
        self.assertFalse((src / "kernel/other.o").exists())
        self.assertTrue((src / "kernel/kept.o").exists())
        self.assertFalse((src / ".git").exists())

    def test_follows_changes(self):
        src = self.prepare().src
        (self.tree / "kernel/other.c").write_text("int new;\n")
        (self.tree / "Kbuild").unlink()
        write(self.tree, {"Kbuild": "# again\n", "added.c": "int added;\n"})
        self.prepare()
        self.assertEqual((src / "kernel/other.c").read_text(), "int new;\n")
        self.assertTrue((src / "added.c").exists())
        (self.tree / "added.c").unlink()
        self.prepare()
        self.assertFalse((src / "added.c").exists())

    def test_file_no_longer_touched_comes_back(self):
        tree = self.prepare((HWLAT, TICK))
        tree.switch({TICK: Blob(b"ours\n"), HWLAT: Blob(b"ours\n")})
        self.prepare((HWLAT,))
        self.assertEqual((tree.src / TICK).read_text(), (self.tree / TICK).read_text())

    def test_older_file_drops_builds(self):
        tree = self.prepare()
        built = tree.folder / "build-um" / "linux"
        write(tree.folder, {"build-um/linux": "built"})
        self.prepare()
        self.assertTrue(built.exists())
        (self.tree / "kernel/other.c").write_text("int newer_text;\n")
        self.prepare()
        self.assertTrue(built.exists())
        (self.tree / "kernel/other.c").write_text("int of_another_release;\n")
        os.utime(self.tree / "kernel/other.c", (1, 1))
        self.prepare()
        self.assertFalse(built.exists())

    def test_interrupted_mirror_drops_builds(self):
        tree = self.prepare()
        write(tree.folder, {"build-um/linux": "built", "mirroring": ""})
        self.prepare()
        self.assertFalse((tree.folder / "build-um").exists())

    def test_change_within_the_second(self):
        other = self.tree / "kernel/other.c"
        os.utime(other, ns=(10**18 + 1, 10**18 + 1))
        src = self.prepare().src
        other.write_text("int otter;\n")	# as long as before
        os.utime(other, ns=(10**18 + 2, 10**18 + 2))
        self.prepare()
        self.assertEqual((src / "kernel/other.c").read_text(), "int otter;\n")

    def test_products_with_odd_names(self):
        write(self.tree, {".gitignore": "x*\n", "x\nkernel": "", os.fsdecode(b"x\xff"): ""})
        src = self.prepare().src
        self.assertTrue((src / "kernel/other.c").exists())
        self.assertEqual(list(src.glob("x*")), [])

    def test_linked_folder_is_refused(self):
        real = self.temp / "real"
        (self.tree / TICK).parent.rename(real)
        (self.tree / TICK).parent.symlink_to(real)
        with self.assertRaises(GateError) as caught:
            self.prepare((TICK,))
        self.assertEqual(caught.exception.status, UNUSABLE)
        self.assertIn("kernel/time of ", caught.exception.line())
        self.assertIn("is a symbolic link", caught.exception.line())

    def test_linked_file_is_refused(self):
        name = "kernel/added.c"
        for target in ("other.c", "nowhere"):
            (self.tree / name).symlink_to(target)
            with self.assertRaises(GateError) as caught:
                self.prepare((TICK, name))
            self.assertEqual(caught.exception.status, UNUSABLE)
            self.assertIn(f"the file {name} of ", caught.exception.line())
            self.assertIn("is a symbolic link", caught.exception.line())
            (self.tree / name).unlink()

    def test_two_trees_of_one_name(self):
        other = make_tree(self.temp / "sub" / "linux")
        self.assertNotEqual(trees.open_tree(str(other), self.cache).folder,
                            trees.open_tree(str(self.tree), self.cache).folder)


class Package(TreeCase):
    def setUp(self):
        super().setUp()
        deb = make_deb(self.temp, self.tree, "6.12", "6.12.7-1")
        (self.cache / "debs").mkdir()
        os.rename(deb, self.cache / "debs" / deb.name)

    def prepare(self):
        tree = trees.open_tree("6.12", self.cache)
        tree.prepare(self.work, set())
        return tree

    def test_unpack(self):
        tree = self.prepare()
        self.assertEqual(tree.version.full, "6.12.7")
        self.assertEqual(tree.origin, "linux-source-6.12 6.12.7-1")
        self.assertEqual({path.name for path in tree.folder.iterdir()}, {"src", "package"})

    def test_damaged(self):
        tree = self.prepare()
        for name in ("src/Kbuild", "package"):
            (tree.folder / name).rename(self.temp / "away")
            with self.assertRaises(GateError) as caught:
                self.prepare()
            self.assertEqual(caught.exception.status, MACHINE)
            self.assertIn("is damaged", caught.exception.line())
            (self.temp / "away").rename(tree.folder / name)

    def test_originals_survive_every_switch(self):
        tree = self.prepare()
        original = tree.lookup(HWLAT)
        tree.switch({HWLAT: Blob(b"one\n"), "kernel/new.c": Blob(b"new\n")})
        tree = self.prepare()
        self.assertEqual(tree.lookup(HWLAT), original)
        self.assertIsNone(tree.lookup("kernel/new.c"))
        # A later version of the patches touches neither.
        tree.switch({TICK: Blob(b"two\n")})
        self.assertEqual((tree.src / HWLAT).read_bytes(), original.data)
        self.assertFalse((tree.src / "kernel/new.c").exists())

    def test_switch_writes_what_differs_only(self):
        tree = self.prepare()
        files = {HWLAT: Blob(b"one\n"), TICK: tree.lookup(TICK)}
        self.assertEqual(tree.switch(files), [HWLAT])
        self.assertEqual(tree.switch(files), [])
        before = time.time_ns()
        (tree.src / HWLAT).write_text("torn")	# as an interrupted switch may leave it
        self.assertEqual(tree.switch(files), [HWLAT])
        self.assertGreaterEqual((tree.src / HWLAT).stat().st_mtime_ns, before - 10**9)

    def test_damaged_package(self):
        (deb,) = (self.cache / "debs").iterdir()
        deb.write_bytes(deb.read_bytes()[:2000])
        with self.assertRaises(GateError) as caught:
            self.prepare()
        self.assertIn(f"remove {deb}", caught.exception.line())
        self.assertFalse((self.cache / "trees/6.12/src").exists())


if __name__ == "__main__":
    unittest.main()
