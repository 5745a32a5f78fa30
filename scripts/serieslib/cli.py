# SPDX-License-Identifier: GPL-2.0
"""The command line of scripts/series."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Optional, Sequence

from gatelib.base import packages, proc
from gatelib.base.errors import HOLDS, UNUSABLE, GateError
from gatelib.base.workspace import Workspace, Progress
from gatelib.commands import common
from gatelib.data.kernels import FLAVOURS
from gatelib.data.trees import PATCH_SETS, STATES
from gatelib.trees.patches import Patches
from serieslib.base.patchfile import read
from serieslib.base.tables import COVER
from serieslib.checks import check
from serieslib.mails.export import Export, export
from serieslib.sets import folders, imports, refresh


def _parser() -> common.Parser:
    parser = common.Parser(prog="series", allow_abbrev=False,
                            description="Keeps patches/, makes mails of it and checks it.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=common.Parser,
                                     metavar="COMMAND")
    shared = common.common_options()

    sub = commands.add_parser("import", parents=[shared], allow_abbrev=False,
                              help="take a set from a git branch")
    sub.add_argument("--set", required=True, choices=PATCH_SETS)
    sub.add_argument("--git", required=True, metavar="DIR", help="the patches are at its HEAD")
    sub.add_argument("--base", metavar="COMMIT",
                     help="the one before the first patch (default: tag base)")
    sub.set_defaults(call=_import)

    sub = commands.add_parser("refresh", parents=[shared], allow_abbrev=False,
                              help="bring kunit/ and selftests/ into the patches")
    sub.add_argument("--set", action="append", choices=PATCH_SETS, help="default: all")
    sub.set_defaults(call=_refresh)

    sub = commands.add_parser("export", parents=[shared], allow_abbrev=False,
                              help="write mails, ready to be sent")
    sub.add_argument("--tree", required=True, metavar="X.Y|PATH")
    sub.add_argument("--state", choices=STATES[:2], default=STATES[0],
                     help="what the series stands on (default: %(default)s)")
    sub.add_argument("--sender", metavar="NAME <MAIL>", help="default: the first patch's author")
    sub.add_argument("-v", "--reroll-count", type=common.at_least(1), default=1, metavar="N",
                     help="version of the series (default: %(default)s)")
    sub.add_argument("--git", metavar="DIR", help="also make a git repository of tree and series, "
                     "with the base tagged, in a folder that is not there yet")
    sub.set_defaults(call=_export)

    sub = commands.add_parser("check", parents=[shared], allow_abbrev=False,
                              help="see whether a maintainer could take the series")
    sub.add_argument("--tree", action="append", default=[], metavar="X.Y|PATH",
                     help="can be repeated (default: none, which checks the files only)")
    sub.add_argument("--only", action="append", choices=check.GROUPS,
                     help="can be repeated (default: all)")
    sub.add_argument("--flavour", action="append", choices=FLAVOURS,
                     help="to build; can be repeated (default: all)")
    sub.add_argument("--jobs", type=common.at_least(1), default=len(os.sched_getaffinity(0)),
                     metavar="N", help="make -jN (default: %(default)s)")
    sub.set_defaults(call=_check)
    return parser


def _import(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    files = imports.taken(root, args.set, Path(os.path.abspath(args.git)), args.base, work.env,
                           work.cache / "tmp")
    changed = folders.store(root, args.set, files)
    for name in changed:
        work.progress.say(f"series: {args.set}/{name} {'written' if name in files else 'removed'}")
    work.progress.say(f"series: {len(folders.patches(files))} patches imported to {args.set}, "
                       f"{len(changed)} files changed")
    _tell_differing(args.set, root, work)
    return HOLDS


def _tell_differing(name: str, root: Path, work: Workspace) -> None:
    """Say which patches differ from kunit/ and selftests/, which are what counts."""
    now = folders.load(root, name)
    fresh = refresh.refreshed(root, name, work.env, work.cache / "tmp").files
    for each in now:
        if fresh[each] != now[each]:
            what = read(now[each]).subject() if each != COVER else each
            work.progress.say(f"series: {name}/{each} ({what}) differs from kunit/ or selftests/; "
                               "change the files there, then type series refresh")


def _refresh(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    wanted = common.once(args.set or PATCH_SETS)
    # All sets are made before the first is written: one that fails changes nothing.
    fresh = {name: refresh.refreshed(root, name, work.env, work.cache / "tmp").files
             for name in wanted}
    count = 0
    for name, files in fresh.items():
        for each in folders.store(root, name, files):
            count += 1
            work.progress.say(f"series: {name}/{each} written")
    work.progress.say(f"series: {count} files changed in {len(wanted)} sets")
    return HOLDS


def _export(args: argparse.Namespace, root: Path) -> int:
    if not args.out:
        raise GateError(UNUSABLE, "export needs --out DIR", "name a new folder for the mails")
    out, args.out = Path(os.path.abspath(args.out)), None
    common.keep_out(args, {"--out": out})
    work = common.work(args, root, Progress(sys.stderr))
    (tree,) = common.trees([args.tree], work)
    target = Path(os.path.abspath(args.git)) if args.git else None
    options = Export(args.state, args.sender, args.reroll_count, out, target)
    with proc.CacheLock(work.cache, work.progress.say), \
            tempfile.TemporaryDirectory(dir=work.cache / "tmp", prefix="export-") as temp:
        patches = Patches(root / "patches", work.env, work.cache / "tmp")
        tree.prepare(work, patches.touched())
        export(tree, options, patches, work, Path(temp))
    return HOLDS


def _check(args: argparse.Namespace, root: Path) -> int:
    work = common.work(args, root, Progress())
    groups = common.once(args.only or (check.GROUPS if args.tree else check.GROUPS[:1]))
    options = check.Options(groups, common.once(args.flavour or FLAVOURS))
    if not args.tree:
        if groups != ["files"]:
            raise GateError(UNUSABLE, "these checks need a tree", "name one with --tree")
        return check.check([], options, work)
    trees = common.trees(args.tree, work)
    with proc.CacheLock(work.cache, work.progress.say):
        packages.ensure((*options.flavours, "series"), work.out, work.env, work.progress.say)
        return check.check(trees, options, work)


def main(argv: Optional[Sequence[str]] = None, *, root: Path) -> int:
    """Run scripts/series; return its exit status.

    argv: the words after the program's name.  root: the project's folder.
    """
    return common.guarded(_parser(), argv, root)
