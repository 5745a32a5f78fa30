# SPDX-License-Identifier: GPL-2.0
"""gate plot: CPUs waiting for jiffies_lock over time, broken and fixed in one picture."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.errors import MACHINE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.tests import GUESTS, PLOT_LABELS, PLOT_NAME
from gatelib.guests import initramfs, selftests
from gatelib.kernels import build
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.patches import Patches
from gatelib.trees.tree import Tree


class Curve(NamedTuple):
    """What the first hold of the lock did to one kernel."""
    waiters: str	# CPUs that had to wait during the hold, as the test counts them
    timeline: Sequence[Tuple[int, int]]	# microseconds since the lock was seen held, CPUs waiting


_SCRIPT = """\
set terminal svg size 720,400 background "white" font "sans-serif,13"
set output "{name}.svg"
set title "CPUs waiting for jiffies_lock while another CPU holds it\\n{subtitle}" noenhanced
set xlabel "time since the lock was taken (ms)"
set ylabel "CPUs waiting"
set yrange [0:{top}]
set xrange [0:]
set grid
set key below
plot {curves}
"""


def measure(tree: Tree, patches: Patches, smp: int, accelerator: selftests.Accelerator,
            work: Workspace) -> Dict[str, Curve]:
    """Run the stampede in both kernels; return state -> how many CPUs waited when.

    Raises GateError if one of them gives no complete results.
    """
    (guest,) = [each for each in GUESTS if each.name == "stampede"]
    found: Dict[str, Curve] = {}
    tree.prepare(work, patches.touched())
    for state in PLOT_LABELS:
        plan = patches.plan(state, tree.lookup, tree.version.series)
        stem = work.out / f"{tree.folder.name}-{state}-plot"
        name = f"{tree.name} {state} x86_64"
        tree.switch(plan.files)
        with work.progress.stage(f"{name}: build"):
            build.build(tree, "x86_64", work, stem.with_name(f"{stem.name}-build.log"))
        with work.progress.stage(f"{name}: build selftests"):
            parts = initramfs.make_parts(tree, guest.items, work,
                                         stem.with_name(f"{stem.name}-selftests.log"))
        accel = accelerator.choose(guest.threads, parts, work)
        with work.progress.stage(f"{name}: boot {smp} CPUs and run {guest.name}"):
            outcome = selftests.run(guest, smp, accel, parts, plan.present, work, stem,
                                 {"JIFFIES_STAMPEDE_TIMELINE": "1"})
        for what, log in outcome.problems:
            raise GateError(MACHINE, f"{name}: {what}", "try again", log=log)
        waiters = [each.values["waiters"] for each in outcome.reading.figures
                   if "waiters" in each.values]
        if not outcome.reading.timeline or not waiters:
            raise GateError(MACHINE, f"{name}: the stampede printed no timeline",
                            "see whether it was skipped", log=outcome.results)
        found[state] = Curve(waiters[0], outcome.reading.timeline)
    return found


def draw(curves: Dict[str, Curve], subtitle: str, smp: int, work: Workspace) -> Path:
    """Write the data files and the picture into work.out; return the picture.

    curves: as measure() returns them.  subtitle: one line.  smp: CPUs of the guest.
    Raises GateError if gnuplot fails.
    """
    words: List[str] = []
    for state, curve in curves.items():
        data = work.out / f"{PLOT_NAME}-{state}.dat"
        lines = ["# ms since the lock was taken, CPUs waiting from then on"]
        lines += [f"{us / 1000:.3f} {waiting}" for us, waiting in curve.timeline]
        write_blob(data, Blob(("\n".join(lines) + "\n").encode()))
        title, colour = PLOT_LABELS[state]
        words.append(f'"{data.name}" with steps linewidth 2 linecolor rgb "{colour}" '
                     f'title "{title}: {curve.waiters} of {smp}"')
    script = work.out / f"{PLOT_NAME}.gp"
    text = _SCRIPT.format(name=PLOT_NAME, subtitle=subtitle, curves=", ".join(words),
                          top=smp + smp // 10)
    write_blob(script, Blob(text.encode()))
    picture = work.out / f"{PLOT_NAME}.svg"
    picture.unlink(missing_ok=True)
    log = work.out / f"{PLOT_NAME}-gnuplot.log"
    log.unlink(missing_ok=True)
    work.must(["gnuplot", script.name], log, "gnuplot could not draw the picture",
               "look for the reason", cwd=work.out)
    if not picture.is_file() or not picture.stat().st_size:
        raise GateError(MACHINE, "gnuplot drew nothing", "look for the reason", log=log,
                        tail=proc.tail(log))
    return picture
