# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/gate."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from pathlib import Path
from typing import Callable, Dict, List, NoReturn, Optional, Sequence, TypeVar

from . import packages, proc, repo, report, run
from .bench import Bench, Progress
from .errors import HOLDS, MACHINE, UNUSABLE, GateError, Interrupted
from .patches import Patches
from .tables import (CACHE_NAME, DEFAULT_SMP, DEFAULT_STATES, DEFAULT_TREES, FIXES, FLAVOURS,
                     STATES)
from .trees import PathTree, Tree, open_tree

_Item = TypeVar("_Item")


class _Parser(argparse.ArgumentParser):
    """Reports a bad call in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"gate: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(UNUSABLE)


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not re.fullmatch(r"\d{1,6}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of at least {least}")
        return int(text)
    return number


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gate", allow_abbrev=False,
                     description="Builds kernels with and without the fixes, and shows that the "
                     "tests tell them apart.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser,
                                     metavar="COMMAND")
    common = _Parser(add_help=False, allow_abbrev=False)
    common.add_argument("--cache", metavar="DIR",
                        help=f"default ${{XDG_CACHE_HOME:-~/.cache}}/{CACHE_NAME}")
    common.add_argument("--out", metavar="DIR", help="logs and results (default: CACHE/out)")

    sub = commands.add_parser("run", parents=[common], allow_abbrev=False,
                              help="build, boot and judge kernels")
    sub.add_argument("--tree", action="append", metavar="X.Y|PATH",
                     help="kernel series from Debian, or a kernel tree; can be repeated "
                     f"(default: {' '.join(DEFAULT_TREES)})")
    sub.add_argument("--state", action="append", choices=STATES,
                     help=f"can be repeated (default: {' '.join(DEFAULT_STATES)})")
    sub.add_argument("--flavour", action="append", choices=FLAVOURS,
                     help="can be repeated (default: all)")
    # Two CPUs are what the witnesses of a race need at the least.
    sub.add_argument("--smp", type=_at_least(2), default=DEFAULT_SMP, metavar="N",
                     help="CPUs of the KUnit guest (default: %(default)s)")
    sub.add_argument("--jobs", type=_at_least(1), default=len(os.sched_getaffinity(0)),
                     metavar="N", help="make -jN (default: %(default)s)")
    sub.set_defaults(call=_run)

    sub = commands.add_parser("state", parents=[common], allow_abbrev=False,
                              help="say which fixes a tree has")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.set_defaults(call=_state)

    sub = commands.add_parser("tree", parents=[common], allow_abbrev=False,
                              help="make a git repository of a tree, without the tests")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.add_argument("--state", choices=STATES, default="as-is")
    sub.add_argument("--git", required=True, metavar="DIR", help="a folder that is not there yet")
    sub.set_defaults(call=_tree)
    return parser


def _folder(path: Path, option: str) -> Path:
    """Make the folder that an option names; return it as an absolute path."""
    path = Path(os.path.abspath(path))
    if re.search(r"[\s:,]", str(path)):
        raise GateError(UNUSABLE, f"{option} {path} has a space, colon or comma in its path, "
                        "which make and QEMU do not take", f"give another {option}")
    try:
        path.mkdir(parents=True, exist_ok=True)
        usable = os.access(path, os.W_OK | os.X_OK)
    except OSError as err:
        raise GateError(UNUSABLE, f"cannot make {option} {path}: {err.strerror}",
                        f"give another {option}") from err
    if not usable:
        raise GateError(UNUSABLE, f"cannot write to {option} {path}", f"give another {option}")
    return path


def _bench(args: argparse.Namespace, root: Path, progress: Progress) -> Bench:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = _folder(Path(args.cache) if args.cache else base / CACHE_NAME, "--cache")
    out = _folder(Path(args.out) if args.out else cache / "out", "--out")
    return Bench(root, cache, out, getattr(args, "jobs", 1), proc.child_env(cache), progress)


def _once(items: Sequence[_Item]) -> List[_Item]:
    return list(dict.fromkeys(items))


def _trees(specs: Sequence[str], bench: Bench) -> List[Tree]:
    trees: Dict[Path, Tree] = {}
    for spec in specs:
        tree = open_tree(spec, bench.cache)
        if isinstance(tree, PathTree):
            for option, folder in (("--cache", bench.cache), ("--out", bench.out)):
                if tree.original in (folder.resolve(), *folder.resolve().parents):
                    raise GateError(UNUSABLE, f"{option} {folder} lies in the tree {spec}",
                                    f"give another {option}: the tree is not to be written to")
        trees[tree.folder] = tree
    return list(trees.values())


def _run(args: argparse.Namespace, root: Path) -> int:
    bench = _bench(args, root, Progress())
    wish = run.Wish(_once(args.state or DEFAULT_STATES), _once(args.flavour or FLAVOURS), args.smp)
    if os.uname().machine != "x86_64":
        raise GateError(MACHINE, f"this is a {os.uname().machine} machine",
                        "the gate builds for x86_64 with the machine's own compiler")
    trees = _trees(args.tree or DEFAULT_TREES, bench)
    with proc.CacheLock(bench.cache, bench.progress.say):
        (bench.out / report.RESULTS_JSON).unlink(missing_ok=True)
        packages.ensure(wish.flavours, bench.out, bench.env, bench.progress.say)
        patches = Patches(root / "patches", bench.env, bench.cache / "tmp")
        whole = run.gate(trees, wish, patches, bench)
        report.write_json(whole, bench.out)
    for line in report.show(whole):
        bench.progress.say(line)
    return whole.status()


def _state(args: argparse.Namespace, root: Path) -> int:
    # What the command prints is for programs too.
    bench = _bench(args, root, Progress(sys.stderr))
    (tree,) = _trees([args.tree], bench)
    with proc.CacheLock(bench.cache, bench.progress.say):
        patches = Patches(root / "patches", bench.env, bench.cache / "tmp")
        tree.inspect(bench)
        files = {name: tree.lookup(name) for name in patches.touched()}
        found = {fix.id: patches.find(fix, files, tree.version.series) for fix in FIXES}
    for fix, state in found.items():
        print(f"{fix}: {state}")
    return HOLDS


def _tree(args: argparse.Namespace, root: Path) -> int:
    bench = _bench(args, root, Progress())
    (tree,) = _trees([args.tree], bench)
    with proc.CacheLock(bench.cache, bench.progress.say):
        patches = Patches(root / "patches", bench.env, bench.cache / "tmp")
        tree.prepare(bench, patches.touched())
        plan = patches.plan(args.state, tree.lookup, tree.version.series, tests=False)
        repo.make(tree, plan, args.state, Path(os.path.abspath(args.git)), bench)
    return HOLDS


def _fail(err: GateError) -> int:
    if err.tail:
        print(err.tail, file=sys.stderr)
    print(f"gate: {err.line()}", file=sys.stderr, flush=True)
    return err.status


def main(argv: Optional[Sequence[str]] = None, *, root: Path) -> int:
    """Run scripts/gate; return its exit status.

    argv: the words after the program's name.  root: the project's folder.
    """
    proc.catch_signals()
    try:
        args = _parser().parse_args(argv)
        return int(args.call(args, root))
    except GateError as err:
        return _fail(err)
    except Interrupted:
        print("gate: interrupted", file=sys.stderr, flush=True)
        return MACHINE
    except OSError as err:
        return _fail(proc.from_os_error(err, Path.cwd()))
    except Exception as err:	# pylint: disable=broad-except
        where = traceback.extract_tb(err.__traceback__)[-1]
        return _fail(GateError(MACHINE, f"internal error: {type(err).__name__}: {err} "
                               f"({Path(where.filename).name}:{where.lineno})", "report this"))
