# SPDX-License-Identifier: GPL-2.0
"""The project's own patches: sorted as the tables say, byte-exact, equal to their sources."""

import hashlib
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Dict, Iterator, Optional, Tuple

from gatelib.base import proc
from gatelib.data.trees import FIXES
from gatelib.trees.files import Blob, read_blob
from gatelib.trees.patches import Patches
from gatelib.trees.tree import Version, read_version

from .project import HWLAT
from .test_results import real_trees

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "patches"

# trace_hwlat.c of mainline, without and with the fix.
HWLAT_BEFORE = "2f7b94e98317cb01a33aaa839b6b52f3a261573f"
HWLAT_AFTER = "3fe274b84f1c2e09d7f235392d909de6e8e13514"

# Where the only editable copy of a file is that the patches add to a tree.
SOURCES = (("kernel/trace/trace_hwlat_test.c", "kunit/trace_hwlat_test.c"),
           ("kernel/time/tick-sched_test.c", "kunit/tick-sched_test.c"))


def blob_id(data: bytes) -> str:
    """Return the name that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def index_of(patch: Path, name: str) -> Optional[Tuple[str, str]]:
    """Return the (abbreviated) blobs before and after that a patch names for a file."""
    found = re.search(rf"^diff --git a/{re.escape(name)} b/.*\nindex (\w+)\.\.(\w+)",
                      patch.read_text(), re.M)
    return (found.group(1), found.group(2)) if found else None


def added(folder: Path) -> Iterator[Tuple[Path, str]]:
    """Return (patch, file) for each file that a set of patches adds."""
    for patch in sorted(folder.glob("[0-9]*.patch")):
        for name in re.findall(r"^diff --git a/(\S+) b/\S+\nnew file mode", patch.read_text(),
                               re.M):
            yield patch, name


class PatchFiles(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory(prefix="gate-test-")
        self.addCleanup(temp.cleanup)
        self.temp = Path(temp.name)
        self.patches = Patches(PATCHES, proc.child_env(self.temp), self.temp)

    def test_every_set_is_sorted_whole(self):
        numbers = {"hwlat": 1, "tick": 2}
        for each in self.patches.sets:
            for fix in FIXES:
                # The set for trees with upstream's fixes holds no hwlat patch.
                self.assertIn(len(each.fixes[fix.id]), {0, numbers[fix.id]}, each.name)
            self.assertTrue(each.fixes["tick"], each.name)
            self.assertTrue(each.tests, each.name)

    def test_hwlat_is_byte_exact_by_its_hashes(self):
        (patch,) = next(each for each in self.patches.sets if each.name == "mainline") \
            .fixes["hwlat"]
        for path, want in ((patch, (HWLAT_BEFORE, HWLAT_AFTER)),
                           (PATCHES / "reverse/hwlat.patch", (HWLAT_AFTER, HWLAT_BEFORE))):
            index = index_of(path, HWLAT)
            self.assertIsNotNone(index, path)
            for short, whole in zip(index, want):
                self.assertGreaterEqual(len(short), 12)
                self.assertTrue(whole.startswith(short), (path, short))

    def test_hwlat_is_byte_exact_on_a_real_file(self):
        data = self.mainline_hwlat()
        if data is None:
            self.skipTest("no tree with mainline's trace_hwlat.c at hand")
        files: Dict[str, Optional[Blob]] = {HWLAT: Blob(data)}
        before = self.patches.apply([PATCHES / "reverse/hwlat.patch"], files)
        self.assertEqual(blob_id(before[HWLAT].data), HWLAT_BEFORE)
        mainline = next(each for each in self.patches.sets if each.name == "mainline")
        after = self.patches.apply(mainline.fixes["hwlat"], before)
        self.assertEqual(blob_id(after[HWLAT].data), HWLAT_AFTER)

    def mainline_hwlat(self) -> Optional[bytes]:
        for src in real_trees():
            # The work tree in a cache may be in any state; what it came with is beside it.
            for path in (src.parent / "orig" / HWLAT, src / HWLAT):
                blob = read_blob(path)
                if blob is not None and blob_id(blob.data) == HWLAT_AFTER:
                    self.assertIsInstance(read_version(src), Version)
                    return blob.data
        return None

    def test_added_files_equal_their_sources(self):
        sources = dict(SOURCES)
        for each in self.patches.sets:
            seen = set()
            for patch, name in added(PATCHES / each.name):
                source = ROOT / self.source(name, sources)
                with tempfile.TemporaryDirectory(dir=self.temp) as folder:
                    subprocess.run(["git", "apply", f"--include={name}", str(patch)], check=True,
                                   cwd=folder, env=proc.child_env(
                                       self.temp, GIT_CEILING_DIRECTORIES=str(self.temp)))
                    self.assertEqual(read_blob(Path(folder) / name), read_blob(source),
                                     f"{patch} is older than {source}: generate it again")
                seen.add(name)
            self.assertLessEqual(set(sources), seen, each.name)

    def source(self, name: str, sources: Dict[str, str]) -> str:
        prefix = "tools/testing/"
        return sources[name] if name in sources else name[len(prefix):]


if __name__ == "__main__":
    unittest.main()
