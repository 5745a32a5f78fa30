# SPDX-License-Identifier: GPL-2.0
"""results.json: everything about a run, for programs.

Its shape is in results.schema.json beside this file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Sequence

from gatelib.base import proc
from gatelib.base.load import Usage
from gatelib.results.report import Cell, Run
from gatelib.results.verdict import measured
from gatelib.trees.files import Blob, write_blob

RESULTS_JSON = "results.json"
# The first number changes when a program that reads the file has to.
FORMAT = "2.0"


class Facts(NamedTuple):
    """What is true of the whole run."""
    started: str		# ISO 8601, UTC
    ended: str
    command: Sequence[str]
    toolchain: str		# compiler and linker
    qemu: str			# its version, "" without it
    accel: str			# what the guests of the selftests ran on, as QEMU takes it


def qemu_version(env: Mapping[str, str]) -> str:
    """Return how QEMU calls itself."""
    said = proc.capture(["qemu-system-x86_64", "--version"], env=env).stdout
    return (said.decode("utf-8", "replace").splitlines() or [""])[0]


def _usage(usage: Usage) -> Dict[str, float]:
    return {"cpu": round(usage.cpu, 1), "waited": round(usage.waited, 1),
            "stopped": round(usage.stopped, 1), "share": round(usage.share, 3)}


def _kernel(cell: Cell) -> Dict[str, Any]:
    return {
        "tree": cell.tree, "origin": cell.origin, "version": cell.version,
        "content": cell.content, "state": cell.state, "flavour": cell.flavour,
        "build": cell.ident, "tests": cell.tests, "started": cell.started,
        "found": dict(cell.found), "expected": list(cell.expected),
        "logs": {suite: log.name for suite, log in cell.logs.items()},
        "seconds": {stage: round(value, 1) for stage, value in cell.seconds.items()},
        "commands": {guest: [_text(word) for word in argv]
                     for guest, argv in cell.commands.items()},
        "usage": _usage(cell.usage),
        "cases": [{"suite": each.result.suite, "case": each.result.case,
                   "status": each.result.status, "reason": each.result.reason,
                   "must": each.must, "outcome": each.outcome, "why": each.why,
                   "measured": measured(each.result),
                   "figures": dict(each.result.evidence.figures)}
                  for each in cell.verdicts],
        "figures": [each._asdict() for each in cell.figures],
        "failures": [{"cause": each.cause, "what": each.what,
                      "log": each.log.name if each.log else ""} for each in cell.failures()],
    }


def _text(word: str) -> str:
    return os.fsencode(word).decode("utf-8", "backslashreplace")


def write(run: Run, facts: Facts, out: Path) -> None:
    """Write everything about the run to out/results.json."""
    passed, failed, skipped = run.counts()
    data = {"format": FORMAT, "status": run.status(), "passed": passed, "failed": failed,
            "skipped": skipped, **facts._asdict(), "usage": _usage(run.usage()),
            "kernels": [_kernel(cell) for cell in run.cells]}
    data["command"] = [_text(word) for word in facts.command]
    text = json.dumps(data, indent=1)
    write_blob(out / RESULTS_JSON, Blob((text + "\n").encode("utf-8", "backslashreplace")))
