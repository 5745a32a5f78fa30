# SPDX-License-Identifier: GPL-2.0
"""Two kernels of the same compressed size: each boot says which of them it is.

piggy.S has only two sizes in its text and takes the compressed kernel in by
.incbin, so whatever does not look at that gives one for the other.
"""

import io
import os
import shutil
import tempfile
import unittest
from pathlib import Path

from gatelib.base import proc
from gatelib.base.workspace import Progress, Workspace
from gatelib.data.guests import PATIENT
from gatelib.data.trees import CACHE_NAME, DEFAULT_TREES
from gatelib.guests.boot import Machine
from gatelib.kernels import build, identity
from gatelib.results.kunit import console_lines
from gatelib.trees import states
from gatelib.trees.patches import Patches
from gatelib.trees.tree import open_tree

ROOT = Path(__file__).resolve().parent.parent.parent
COMPRESSED = "arch/x86/boot/compressed/vmlinux.bin.gz"
BUILDS = 60	# that many idents are tried until two give the same size
BOOT_SECONDS = 300


class SameSize(unittest.TestCase):
    def setUp(self):
        temp = tempfile.TemporaryDirectory(prefix="gate-kernels-")
        self.addCleanup(temp.cleanup)
        self.temp = Path(temp.name)
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / CACHE_NAME
        self.work = Workspace(ROOT, base, self.temp, len(os.sched_getaffinity(0)),
                              proc.child_env(base), Progress(io.StringIO()))
        lock = proc.CacheLock(base, print)
        lock.__enter__()
        self.addCleanup(lock.__exit__, None, None, None)
        self.tree = open_tree(DEFAULT_TREES[0], base)
        patches = Patches(ROOT / "patches", self.work.env, base / "tmp")
        self.tree.prepare(self.work, states.touched(ROOT, patches))
        self.tree.switch(states.state_of(self.tree, "fixed", "ours", ROOT, patches).files)

    def build(self, ident):
        """Build the kernel as ident; return a copy of its image and its compressed size."""
        made = build.build(self.tree, "x86_64", self.work, self.temp / "build.log", ident)
        image = self.temp / ident
        shutil.copyfile(made, image)
        where = build.folder(self.tree, "x86_64")
        return image, (where / COMPRESSED).stat().st_size

    def version(self, image):
        """Boot the image until it panics for want of an init; return what it says it is."""
        console = self.temp / "console.log"
        console.unlink(missing_ok=True)
        machine = Machine(image, f"console=ttyS0 panic=-1 {PATIENT} kunit.enable=0", 2, [console])
        proc.run(machine.argv(), log=self.temp / "qemu.log", env=self.work.env,
                 timeout=BOOT_SECONDS)
        return identity.running(console_lines(console))

    def test_each_says_which_it_is(self):
        seen = {}
        for number in range(BUILDS):
            ident = f"{number:016x}"
            image, size = self.build(ident)
            if size in seen:
                break
            seen[size] = (ident, image)
        else:
            self.fail(f"no two of {BUILDS} kernels have the same compressed size")
        other, other_image = seen[size]
        for mine, where, wrong in ((ident, image, other), (other, other_image, ident)):
            version = self.version(where)
            self.assertEqual(identity.complaint(version, mine), "")
            # A stale image in the place of the one that was meant.
            self.assertIn("another kernel ran", identity.complaint(version, wrong))


if __name__ == "__main__":
    unittest.main()
