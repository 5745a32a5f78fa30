# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/series."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Optional, Sequence

from gatelib import command, packages, proc
from gatelib.bench import Bench, Progress
from gatelib.errors import HOLDS, UNUSABLE, GateError
from gatelib.patches import Patches
from gatelib.tables import FLAVOURS, PATCH_SETS, STATES

from . import check, refresh, sets, takeback
from .export import Export, export
from .patchfile import read
from .tables import COVER


def _parser() -> command.Parser:
    parser = command.Parser(prog="series", allow_abbrev=False,
                            description="Keeps patches/, makes mails of it and checks it.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=command.Parser,
                                     metavar="COMMAND")
    common = command.common_options()

    sub = commands.add_parser("import", parents=[common], allow_abbrev=False,
                              help="take a set from a git branch")
    sub.add_argument("--set", required=True, choices=PATCH_SETS)
    sub.add_argument("--git", required=True, metavar="DIR", help="the patches are at its HEAD")
    sub.add_argument("--base", metavar="COMMIT",
                     help="the one before the first patch (default: tag base)")
    sub.set_defaults(call=_import)

    sub = commands.add_parser("refresh", parents=[common], allow_abbrev=False,
                              help="bring kunit/ and selftests/ into the patches")
    sub.add_argument("--set", action="append", choices=PATCH_SETS, help="default: all")
    sub.set_defaults(call=_refresh)

    sub = commands.add_parser("export", parents=[common], allow_abbrev=False,
                              help="write mails, ready to be sent")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.add_argument("--state", choices=STATES[:2], default=STATES[0],
                     help="what the series stands on (default: %(default)s)")
    sub.add_argument("--sender", metavar="NAME <MAIL>", help="default: the first patch's author")
    sub.add_argument("-v", "--reroll-count", type=command.at_least(1), default=1, metavar="N",
                     help="version of the series (default: %(default)s)")
    sub.add_argument("--git", metavar="DIR", help="also make a git repository of tree and series, "
                     "with the base tagged, in a folder that is not there yet")
    sub.set_defaults(call=_export)

    sub = commands.add_parser("check", parents=[common], allow_abbrev=False,
                              help="see whether a maintainer could take the series")
    sub.add_argument("--tree", action="append", default=[], metavar="X.Y|PATH",
                     help="can be repeated (default: none, which checks the files only)")
    sub.add_argument("--only", action="append", choices=check.GROUPS,
                     help="can be repeated (default: all)")
    sub.add_argument("--flavour", action="append", choices=FLAVOURS,
                     help="to build; can be repeated (default: all)")
    sub.add_argument("--jobs", type=command.at_least(1), default=len(os.sched_getaffinity(0)),
                     metavar="N", help="make -jN (default: %(default)s)")
    sub.set_defaults(call=_check)
    return parser


def _import(args: argparse.Namespace, root: Path) -> int:
    bench = command.bench(args, root, Progress())
    files = takeback.taken(root, args.set, Path(os.path.abspath(args.git)), args.base, bench.env,
                           bench.cache / "tmp")
    changed = sets.store(root, args.set, files)
    for name in changed:
        bench.progress.say(f"series: {args.set}/{name} {'written' if name in files else 'removed'}")
    bench.progress.say(f"series: {len(sets.patches(files))} patches imported to {args.set}, "
                       f"{len(changed)} files changed")
    _tell_differing(args.set, root, bench)
    return HOLDS


def _tell_differing(name: str, root: Path, bench: Bench) -> None:
    """Say which patches differ from kunit/ and selftests/, which are what counts."""
    now = sets.load(root, name)
    fresh = refresh.refreshed(root, name, bench.env, bench.cache / "tmp").files
    for each in now:
        if fresh[each] != now[each]:
            what = read(now[each]).subject() if each != COVER else each
            bench.progress.say(f"series: {name}/{each} ({what}) differs from kunit/ or selftests/; "
                               "change the files there, then type series refresh")


def _refresh(args: argparse.Namespace, root: Path) -> int:
    bench = command.bench(args, root, Progress())
    wanted = command.once(args.set or PATCH_SETS)
    # All sets are made before the first is written: one that fails changes nothing.
    fresh = {name: refresh.refreshed(root, name, bench.env, bench.cache / "tmp").files
             for name in wanted}
    count = 0
    for name, files in fresh.items():
        for each in sets.store(root, name, files):
            count += 1
            bench.progress.say(f"series: {name}/{each} written")
    bench.progress.say(f"series: {count} files changed in {len(wanted)} sets")
    return HOLDS


def _export(args: argparse.Namespace, root: Path) -> int:
    if not args.out:
        raise GateError(UNUSABLE, "export needs --out DIR", "name a new folder for the mails")
    out, args.out = Path(os.path.abspath(args.out)), None
    command.keep_out(args, {"--out": out})
    bench = command.bench(args, root, Progress(sys.stderr))
    (tree,) = command.trees([args.tree], bench)
    target = Path(os.path.abspath(args.git)) if args.git else None
    wish = Export(args.state, args.sender, args.reroll_count, out, target)
    with proc.CacheLock(bench.cache, bench.progress.say), \
            tempfile.TemporaryDirectory(dir=bench.cache / "tmp", prefix="export-") as temp:
        patches = Patches(root / "patches", bench.env, bench.cache / "tmp")
        tree.prepare(bench, patches.touched())
        export(tree, wish, patches, bench, Path(temp))
    return HOLDS


def _check(args: argparse.Namespace, root: Path) -> int:
    bench = command.bench(args, root, Progress())
    groups = command.once(args.only or (check.GROUPS if args.tree else check.GROUPS[:1]))
    wish = check.Wish(groups, command.once(args.flavour or FLAVOURS))
    if not args.tree:
        if groups != ["files"]:
            raise GateError(UNUSABLE, "these checks need a tree", "name one with --tree")
        return check.check([], wish, bench)
    trees = command.trees(args.tree, bench)
    with proc.CacheLock(bench.cache, bench.progress.say):
        packages.ensure((*wish.flavours, "series"), bench.out, bench.env, bench.progress.say)
        return check.check(trees, wish, bench)


def main(argv: Optional[Sequence[str]] = None, *, root: Path) -> int:
    """Run scripts/series; return its exit status.

    argv: the words after the program's name.  root: the project's folder.
    """
    return command.guarded(_parser(), argv, root)
