# SPDX-License-Identifier: GPL-2.0
"""Where modules are: imports point one way, and nothing has grown too large."""

import ast
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
# A room imports from itself and from those before it.
ROOMS = {
    "gatelib": ("data", "base", "trees", "kernels", "guests", "results", "commands"),
    "serieslib": ("base", "sets", "mails", "checks", "cli"),
}
MOST_LINES = 400
MOST_MODULES = 12


def imported(path):
    """Return the modules that a module imports, as tuples of their parts."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield tuple((node.module or "").split("."))
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield tuple(name.name.split("."))


class Rooms(unittest.TestCase):
    def test_imports_point_one_way(self):
        for library, rooms in ROOMS.items():
            for path in (SCRIPTS / library).rglob("*.py"):
                parts = path.relative_to(SCRIPTS / library).with_suffix("").parts
                if parts == ("__init__",):
                    continue
                self.assertIn(parts[0], rooms, path)
                for found in imported(path):
                    if found[0] == library:
                        self.assertLessEqual(rooms.index(found[1]), rooms.index(parts[0]),
                                             f"{path} imports {'.'.join(found)}")
                    self.assertFalse(library == "gatelib" and found[0] == "serieslib", path)

    def test_a_door_says_what_goes_in_and_out(self):
        for path in SCRIPTS.glob("*lib/**/__init__.py"):
            self.assertTrue(ast.get_docstring(ast.parse(path.read_text())), path)

    def test_size(self):
        for path in SCRIPTS.rglob("*.py"):
            self.assertLessEqual(len(path.read_text().splitlines()), MOST_LINES, path)
        for folder in SCRIPTS.glob("*lib/*/"):
            if folder.is_dir():
                modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
                self.assertLessEqual(len(modules), MOST_MODULES, folder)


if __name__ == "__main__":
    unittest.main()
