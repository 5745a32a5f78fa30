# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/gate."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from gatelib.base import packages, proc
from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Progress
from gatelib.commands import boot, common, plot, run
from gatelib.data.guests import ACCELERATORS
from gatelib.data.kernels import FLAVOURS
from gatelib.data.packages import PACKAGES
from gatelib.data.tests import STAGES, STAGE_OF_SMP
from gatelib.data.trees import DEFAULT_STATES, DEFAULT_TREES, FIXES, STATES, TESTS
from gatelib.guests import selftests
from gatelib.kernels import identity
from gatelib.results import jsonfile, report
from gatelib.trees import repo, states
from gatelib.trees.patches import Patches


def _parser() -> common.Parser:
    parser = common.Parser(prog="gate", allow_abbrev=False,
                     description="Builds kernels with and without the fixes, and shows that the "
                     "tests tell them apart.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=common.Parser,
                                     metavar="COMMAND")
    shared = common.common_options()

    sub = commands.add_parser("run", parents=[shared], allow_abbrev=False,
                              help="build, boot and judge kernels")
    sub.add_argument("--tree", action="append", metavar="X.Y|PATH",
                     help="kernel series from Debian, or a kernel tree; can be repeated "
                     f"(default: {' '.join(DEFAULT_TREES)})")
    sub.add_argument("--state", action="append", choices=STATES,
                     help=f"can be repeated (default: {' '.join(DEFAULT_STATES)})")
    sub.add_argument("--flavour", action="append", choices=FLAVOURS,
                     help="can be repeated (default: all)")
    sub.add_argument("--only", choices=tuple(STAGES), help="leave the other tests out")
    sub.add_argument("--expect", action="append", metavar="NAME|FILE", default=[],
                     help="what is known to fail in the tree as it is: a name in "
                     "scripts/expectations, or a file *-fails.txt, *-skips.txt or *-flakes.txt; "
                     "can be repeated (default: nothing for a PATH, a table for Debian's)")
    _add_tests(sub)
    defaults = ", ".join(f"{stage.smp} for {name}" for name, stage in STAGES.items())
    sub.add_argument("--smp", type=common.at_least(2), metavar="N",
                     help="CPUs of the guest that runs what --only says, without --only of the "
                     f"one that runs the {STAGE_OF_SMP} (default: {defaults})")
    _add_machine(sub)
    sub.set_defaults(call=_run)

    _add_boot_and_plot(commands, shared)

    sub = commands.add_parser("state", parents=[shared], allow_abbrev=False,
                              help="say which fixes a tree has")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.set_defaults(call=_state)

    sub = commands.add_parser("packages", parents=[shared], allow_abbrev=False,
                              help="install what any command or test of the project needs")
    sub.set_defaults(call=_packages)

    sub = commands.add_parser("tree", parents=[shared], allow_abbrev=False,
                              help="make a git repository of a tree, without the tests")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.add_argument("--state", choices=STATES, default="as-is")
    sub.add_argument("--git", required=True, metavar="DIR", help="a folder that is not there yet")
    sub.set_defaults(call=_tree)
    return parser


def _add_tests(sub: common.Parser) -> None:
    sub.add_argument("--tests", choices=TESTS, default=TESTS[0],
                     help="where a tree has these tests already: ours in their place, or the "
                     "tree's own (default: %(default)s)")


def _add_machine(sub: common.Parser) -> None:
    """Add the options of a command that builds and boots."""
    sub.add_argument("--accel", choices=ACCELERATORS, default="auto",
                     help="what the guests of the selftests run on; auto: KVM if a guest could be "
                     "booted with it, else TCG (default: %(default)s)")
    sub.add_argument("--jobs", type=common.at_least(1), default=len(os.sched_getaffinity(0)),
                     metavar="N", help="make -jN (default: %(default)s)")


def _add_boot_and_plot(commands: Any, shared: common.Parser) -> None:
    stage = STAGES[STAGE_OF_SMP]
    sub = commands.add_parser("boot", parents=[shared], allow_abbrev=False,
                              help="a kernel's console on this terminal")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.add_argument("--state", required=True, choices=STATES)
    sub.add_argument("--smp", type=common.at_least(1), default=stage.smp, metavar="N",
                     help="CPUs of the guest (default: %(default)s)")
    sub.add_argument("--shell", action="store_true",
                     help="give a shell; without it the selftests run, and the guest ends")
    _add_tests(sub)
    _add_machine(sub)
    sub.set_defaults(call=_boot)

    sub = commands.add_parser("plot", parents=[shared], allow_abbrev=False,
                              help="draw how many CPUs wait for jiffies_lock, with no fix and with "
                              "each form of it")
    sub.add_argument("--tree", default=DEFAULT_TREES[0], metavar="X.Y|PATH",
                     help="default: %(default)s")
    sub.add_argument("--smp", type=common.at_least(stage.least_smp), default=stage.smp,
                     metavar="N", help="CPUs of the guest (default: %(default)s)")
    _add_machine(sub)
    sub.set_defaults(call=_plot)


def _boot(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    (tree,) = common.trees([args.tree], work)
    with proc.CacheLock(work.cache, work.progress.say):
        packages.ensure(("x86_64", "selftests"), work.out, work.env, work.progress.say)
        selftests.check_smp(args.smp, work)
        patches = Patches(root / "patches", work.env, work.cache / "tmp")
        tree.prepare(work, states.touched(root, patches))
        state = states.state_of(tree, args.state, args.tests, root, patches)
        prepared = boot.prepare(tree, state, args.smp, args.shell,
                                selftests.Accelerator(args.accel), work)
    return boot.run(prepared, work)


def _plot(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    (tree,) = common.trees([args.tree], work)
    with proc.CacheLock(work.cache, work.progress.say):
        packages.ensure(("x86_64", "selftests", "plot"), work.out, work.env, work.progress.say)
        selftests.check_smp(args.smp, work)
        patches = Patches(root / "patches", work.env, work.cache / "tmp")
        curves = plot.measure(tree, patches, args.smp, selftests.Accelerator(args.accel), work)
        subtitle = f"Linux {tree.version.full}, {args.smp} CPUs in QEMU"
        picture = plot.draw(curves, subtitle, args.smp, work)
    work.progress.say(f"gate: drew {picture}")
    return HOLDS


def _run(args: argparse.Namespace, root: Path) -> int:
    started = common.utc_now()
    work = common.work(args, root, Progress())
    options = _options(args, root)
    # However this run ends, no earlier one's results are to be taken for its own.
    (work.out / jsonfile.RESULTS_JSON).unlink(missing_ok=True)
    if os.uname().machine != "x86_64":
        raise GateError(MACHINE, f"this is a {os.uname().machine} machine",
                        "the gate builds for x86_64 with the machine's own compiler")
    trees = common.trees(args.tree or DEFAULT_TREES, work)
    with proc.CacheLock(work.cache, work.progress.say):
        (work.out / jsonfile.RESULTS_JSON).unlink(missing_ok=True)
        packages.ensure((*options.flavours, *options.stages), work.out, work.env, work.progress.say)
        if "x86_64" in options.flavours:
            selftests.check_smp(max(options.smp.values()), work)
        patches = Patches(root / "patches", work.env, work.cache / "tmp")
        whole = run.gate(trees, options, patches, work)
        qemu = jsonfile.qemu_version(work.env) if "x86_64" in options.flavours else ""
        facts = jsonfile.Facts(started, common.utc_now(), sys.argv, identity.toolchain(work.env),
                               qemu, options.accel.chosen)
        jsonfile.write(whole, facts, work.out)
    for line in report.show(whole):
        work.progress.say(line)
    return whole.status()


def _options(args: argparse.Namespace, root: Path) -> run.Options:
    """Return what the words of "gate run" ask for."""
    stages = [args.only] if args.only else list(STAGES)
    flavours: List[str] = common.once(args.flavour or FLAVOURS)
    if args.only:
        usable = [each for each in flavours if each in STAGES[args.only].flavours]
        if not usable:
            raise GateError(UNUSABLE, f"--only {args.only} does not run in --flavour "
                            + " ".join(flavours), "leave one of them out")
        flavours = usable
    smp: Dict[str, int] = {stage: STAGES[stage].smp for stage in stages}
    if args.smp is not None:
        stage = args.only or STAGE_OF_SMP
        if args.smp < STAGES[stage].least_smp:
            raise GateError(UNUSABLE, f"--smp {args.smp}: the {stage} need at least "
                            f"{STAGES[stage].least_smp} CPUs", "give a larger --smp")
        smp[stage] = args.smp
    chosen = common.once(args.state or DEFAULT_STATES)
    expect = common.once(args.expect)
    if expect and "as-is" not in chosen:
        raise GateError(UNUSABLE, "--expect is for the tree as it is", "add --state as-is")
    run.check_expectations(root, expect)	# before anything is fetched or built
    return run.Options(chosen, flavours, stages, smp,
                    selftests.Accelerator(args.accel), expect, args.tests)


def _state(args: argparse.Namespace, root: Path) -> int:
    # What the command prints is for programs too.
    work = common.work(args, root, Progress(sys.stderr))
    (tree,) = common.trees([args.tree], work)
    with proc.CacheLock(work.cache, work.progress.say):
        patches = Patches(root / "patches", work.env, work.cache / "tmp")
        tree.inspect(work)
        files = {name: tree.lookup(name) for name in patches.touched()}
        found = {fix.id: patches.find(fix, files, tree.version.series) for fix in FIXES}
    for fix, state in found.items():
        print(f"{fix}: {state}")
    return HOLDS


def _packages(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    every = list(dict.fromkeys(group for row in PACKAGES for group in row.flavours))
    packages.ensure(every, work.out, work.env, work.progress.say)
    return HOLDS


def _tree(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    (tree,) = common.trees([args.tree], work)
    with proc.CacheLock(work.cache, work.progress.say):
        patches = Patches(root / "patches", work.env, work.cache / "tmp")
        tree.prepare(work, states.touched(root, patches))
        original = {name: tree.lookup(name) for name in states.touched(root, patches)}
        if args.state != "as-is":
            original.update(patches.plan(args.state, tree.lookup, tree.version.series).files)
        repo.make(tree, original, args.state, Path(os.path.abspath(args.git)), work)
    return HOLDS


def main(argv: Optional[Sequence[str]] = None, *, root: Path) -> int:
    """Run scripts/gate; return its exit status.

    argv: the words after the program's name.  root: the project's folder.
    """
    return common.guarded(_parser(), argv, root)
