# SPDX-License-Identifier: GPL-2.0
"""What the command lines of the project's scripts have in common."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
import time
import traceback
from pathlib import Path
from typing import Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, TypeVar

from gatelib.base import proc
from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, GateError, Interrupted
from gatelib.base.workspace import Workspace, Progress
from gatelib.data.trees import CACHE_NAME
from gatelib.trees.tree import Tree, open_tree, path_of, read_version

_Item = TypeVar("_Item")


class Parser(argparse.ArgumentParser):
    """Reports a bad call in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog.split()[0]}: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(UNUSABLE)


def at_least(least: int) -> Callable[[str], int]:
    """Return an argparse type: a number that is not below least."""
    def number(text: str) -> int:
        if not re.fullmatch(r"\d{1,6}", text) or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of at least {least}")
        return int(text)
    return number


def common_options() -> Parser:
    """Return the parser of the options that every command has, to be a parent."""
    common = Parser(add_help=False, allow_abbrev=False)
    common.add_argument("--cache", metavar="DIR",
                        help=f"default ${{XDG_CACHE_HOME:-~/.cache}}/{CACHE_NAME}")
    common.add_argument("--out", metavar="DIR", help="logs and results (default: CACHE/out)")
    return common


def _spelt(char: str) -> str:
    names = {" ": "space", ":": "colon", ",": "comma"}
    return names.get(char, char if char.isprintable() else ascii(char))


def _make(path: Path, option: str) -> None:
    """Make the folder that an option names."""
    odd = re.search(r"[^\w/.+@=~-]", str(path))
    if odd:
        raise GateError(UNUSABLE, f"{option} {path} has a {_spelt(odd.group())} in its path, "
                        "which make or QEMU does not take", f"give another {option}")
    try:
        path.mkdir(parents=True, exist_ok=True)
        usable = os.access(path, os.W_OK | os.X_OK)
    except OSError as err:
        raise GateError(UNUSABLE, f"cannot make {option} {path}: {err.strerror}",
                        f"give another {option}") from err
    if not usable:
        raise GateError(UNUSABLE, f"cannot write to {option} {path}", f"give another {option}")


def keep_out(args: argparse.Namespace, places: Mapping[str, Path]) -> None:
    """Raise GateError if a place, by option, lies in a tree that the user named."""
    named = getattr(args, "tree", None) or []
    for spec in [named] if isinstance(named, str) else named:
        original = path_of(spec)
        for option, where in places.items():
            real = Path(os.path.realpath(where))
            if original is not None and original in (real, *real.parents):
                read_version(original)	# a folder that is no tree is told so
                raise GateError(UNUSABLE, f"{option} {where} lies in the tree {spec}",
                                f"give another {option}: the tree is not to be written to")


def work(args: argparse.Namespace, root: Path, progress: Progress) -> Workspace:
    """Return the work that the common options ask for; make its folders."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.path.abspath(args.cache or base / CACHE_NAME))
    out = Path(os.path.abspath(args.out or cache / "out"))
    places = {"--cache": cache, "--out": out}
    git = getattr(args, "git", None)
    keep_out(args, {**places, **({"--git": Path(os.path.abspath(git))} if git else {})})
    for option, place in places.items():
        _make(place, option)
    return Workspace(root, cache, out, getattr(args, "jobs", 1), proc.child_env(cache), progress)


def utc_now() -> str:
    """Return the time, as ISO 8601 writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def once(items: Sequence[_Item]) -> List[_Item]:
    """Return the items in order, each once."""
    return list(dict.fromkeys(items))


def trees(specs: Sequence[str], at: Workspace) -> List[Tree]:
    """Return the trees that the user named, each once.

    Raises GateError if one cannot be used.
    """
    found: Dict[Path, Tree] = {}
    for spec in specs:
        tree = open_tree(spec, at.cache)
        found[tree.folder] = tree
    return list(found.values())


def _fail(err: GateError, program: str) -> int:
    if err.tail:
        print(err.tail, file=sys.stderr)
    print(f"{program}: {err.line()}", file=sys.stderr, flush=True)
    return err.status


def guarded(parser: Parser, argv: Optional[Sequence[str]], root: Path) -> int:
    """Parse argv and run its command; return the exit status, whatever happens.

    A command is args.call(args, root), and returns an exit status.
    """
    proc.catch_signals()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A path need not be text, and a locale need not have all characters.
        sys.stdout.reconfigure(errors="backslashreplace")
    status = _call(parser, argv, root)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as err:
        # Else the interpreter tries once more at its end, and has a status of its own for that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status != MACHINE:
            status = _fail(_unwritten(err), parser.prog)
    return status


def _unwritten(err: OSError) -> GateError:
    return GateError(MACHINE, f"cannot write to the standard output: {err.strerror}",
                     "see where it leads to")


def _call(parser: Parser, argv: Optional[Sequence[str]], root: Path) -> int:
    try:
        args = parser.parse_args(argv)
        return int(args.call(args, root))
    except SystemExit as end:	# from the parser
        return int(end.code or HOLDS)
    except BrokenPipeError as err:
        return _fail(_unwritten(err), parser.prog)
    except GateError as err:
        return _fail(err, parser.prog)
    except Interrupted:
        print(f"{parser.prog}: interrupted", file=sys.stderr, flush=True)
        return MACHINE
    except OSError as err:
        return _fail(proc.from_os_error(err, Path(".")), parser.prog)
    except Exception as err:	# pylint: disable=broad-except
        where = traceback.extract_tb(err.__traceback__)[-1]
        return _fail(GateError(MACHINE, f"internal error: {type(err).__name__}: {err} "
                               f"({Path(where.filename).name}:{where.lineno})", "report this"),
                     parser.prog)
