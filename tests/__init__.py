# SPDX-License-Identifier: GPL-2.0
"""Unit tests of scripts/: no kernel is built, and nothing of the machine is changed."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
