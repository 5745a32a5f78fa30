# SPDX-License-Identifier: GPL-2.0
"""Which cases a made-up kernel has, and how each ends: as the shipped expectations say."""

import os
import re
import sys
from pathlib import Path
from typing import List, Set, Tuple

sys.path.insert(0, os.environ["GATE_TEST_SCRIPTS"])

from gatelib.results.declared import declared  # noqa: E402

FAKE = os.environ.get("GATE_FAKE", "")
ROOT = Path(os.environ["GATE_TEST_SCRIPTS"]).parent


def _listed(name: str, flavour: str) -> Set[str]:
    path = ROOT / "scripts" / "expectations" / f"{name}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [re.fullmatch(r"([\w.-]+\.\w+)(?:,(\w+))?", line) for line in lines]
    return {each.group(1) for each in found if each and each.group(2) in (None, flavour)}


def failing(kernel: str, flavour: str) -> Set[str]:
    """Return what fails in the kernel whose sources are the text kernel."""
    fails: Set[str] = set()
    if "read_once" not in kernel:
        fails |= _listed("hwlat-absent-fails", flavour)
    if "gate()" in kernel:
        fails |= _listed("tick-atomic-gate-fails", flavour)
    elif "trylock" not in kernel:
        fails |= _listed("tick-absent-fails", flavour)
    return fails


def cases(suite: str, kernel: str, flavour: str) -> List[Tuple[str, str]]:
    """Return (case, "ok", "not ok" or "skip") for each case of the suite."""
    fails, skips = failing(kernel, flavour), _listed(f"{flavour}-skips", flavour)
    found = []
    for case in declared(ROOT)[suite]:
        name = f"{suite}.{case}"
        result = "skip" if name in skips else "not ok" if name in fails else "ok"
        found.append((case, result))
    return found


def always_good(suite: str) -> str:
    """Return a case of the suite that no expectation names."""
    named = {name for flavour in ("um", "x86_64") for list_ in (
        "hwlat-absent-fails", "tick-atomic-gate-fails", "tick-absent-fails", "um-skips")
        for name in _listed(list_, flavour)}
    return next(case for case in declared(ROOT)[suite] if f"{suite}.{case}" not in named)


def witness(suite: str) -> str:
    """Return a case of the suite that fails without a fix, in every flavour."""
    named = _listed("hwlat-absent-fails", "um") | _listed("tick-absent-fails", "um")
    skips = _listed("um-skips", "um")
    return next(case for case in declared(ROOT)[suite]
                if f"{suite}.{case}" in named - skips)
