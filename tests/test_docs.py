# SPDX-License-Identifier: GPL-2.0
"""The documentation builds, and names only what is there."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Docs(unittest.TestCase):
    def test_sphinx_has_no_warning(self):
        if shutil.which("sphinx-build") is None and not os.environ.get("CI"):
            self.skipTest("no sphinx-build: install python3-sphinx")
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(["sphinx-build", "-W", "-q", "-E", "-d", f"{out}/doctrees",
                                   str(ROOT / "Documentation"), f"{out}/html"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  universal_newlines=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_links_of_markdown_files_exist(self):
        for page in ("README.md", "MAINTAINERS-notes.md"):
            text = (ROOT / page).read_text("utf-8")
            links = re.findall(r"\]\(([^)#:]+)\)", text)
            self.assertTrue(links, page)
            for link in links:
                self.assertTrue((ROOT / link).exists(), f"{page}: {link}")


if __name__ == "__main__":
    unittest.main()
