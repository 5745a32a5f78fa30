# SPDX-License-Identifier: GPL-2.0
"""gate plot: CPUs waiting for jiffies_lock over time, a curve for each form of the fix."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from gatelib.base import proc
from gatelib.base.errors import MACHINE, GateError, blamed
from gatelib.base.workspace import Workspace
from gatelib.data.figures import PLOT_LABELS, PLOT_NAME
from gatelib.data.tests import GUESTS
from gatelib.data.trees import TESTS
from gatelib.guests import initramfs, selftests
from gatelib.kernels import build, identity
from gatelib.results import ktap, kunit
from gatelib.trees import states
from gatelib.trees.files import Blob, write_blob
from gatelib.trees.patches import Patches
from gatelib.trees.states import State
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
    """Run the stampede in each kernel of PLOT_LABELS; return state -> how many CPUs waited when.

    Raises GateError if one of them gives no complete results.
    """
    found: Dict[str, Curve] = {}
    tree.prepare(work, states.touched(work.root, patches))
    for name in PLOT_LABELS:
        state = states.state_of(tree, name, TESTS[0], work.root, patches)
        found[name] = _curve(tree, state, smp, accelerator, work)
    return found


def _curve(tree: Tree, state: State, smp: int, accelerator: selftests.Accelerator,
           work: Workspace) -> Curve:
    (guest,) = [each for each in GUESTS if each.name == "stampede"]
    stem = work.out / f"{tree.folder.name}-{state.name}-plot"
    name = f"{tree.name} {state.name} x86_64"
    tree.switch(state.files)
    ident = identity.kernel_id(tree, state.files, "x86_64", work)
    with work.progress.stage(f"{name}: build"):
        build.build(tree, "x86_64", work, stem.with_name(f"{stem.name}-build.log"), ident)
    with work.progress.stage(f"{name}: build selftests"):
        parts = initramfs.make_parts(tree, guest.items, work,
                                     stem.with_name(f"{stem.name}-selftests.log"), ident,
                                     identity.tests_id(tree, state.files, work))
    accel = accelerator.choose(guest.threads, parts, work)
    with work.progress.stage(f"{name}: boot {smp} CPUs and run {guest.name}"):
        logs = selftests.run(guest, smp, accel, parts, work, stem,
                             {"JIFFIES_STAMPEDE_TIMELINE": "1"})
    reading = ktap.read(logs.text(), guest.items, ident)
    for problem in [*reading.problems, *kunit.splats(kunit.console_lines(logs.console))]:
        raise blamed(problem.cause, f"{name}: {problem.what}", "try again", log=logs.results)
    waiters = [each.values["waiters"] for each in reading.figures if "waiters" in each.values]
    if not reading.timeline or not waiters:
        raise GateError(MACHINE, f"{name}: the stampede printed no timeline",
                        "see whether it was skipped", log=logs.results)
    return Curve(waiters[0], reading.timeline)


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
