# SPDX-License-Identifier: GPL-2.0
"""Children of the gate, its lock, its disk space, and how all of it ends."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import IO, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from gatelib.base.errors import MACHINE, UNUSABLE, GateError, Interrupted
from gatelib.base.load import Load, Usage

# Set by "make gate" or by the user's shell, and poison for the make that the
# gate starts, or for git outside a repository.
_SCRUB = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MAKEFILES", "O",
          "ARCH", "SUBARCH", "CROSS_COMPILE", "LLVM", "CC", "HOSTCC", "CFLAGS",
          "LDFLAGS", "KCFLAGS", "KCPPFLAGS", "KAFLAGS", "LOCALVERSION", "USERCFLAGS",
          "USERLDFLAGS", "HOSTCFLAGS", "HOSTLDFLAGS", "CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH",
          "GNUMAKEFLAGS", "TAR_OPTIONS", "SKIP_TARGETS", "TARGETS", "KSFT_INSTALL_PATH",
          "V", "W", "C", "PYTHONPATH")
_SCRUB_PREFIX = ("GIT_", "KBUILD_", "KCONFIG_", "KUNIT_")

_PR_SET_PDEATHSIG = 1
_GRACE = 4.0	# seconds between SIGTERM and SIGKILL: make removes half-written targets
_POLL = 0.1
_SAMPLE = 1.0	# seconds between two looks at what a child gets of the machine
_STARVED_TIMES = 10	# a child that gets nothing has so many times its bound of wall time
# Bounds for a child whose caller names none: nothing that is run here comes near them.
HELPER_SECONDS = 7200.0
HELPER_BYTES = 1 << 28


class Done(NamedTuple):
    """How a child ended."""
    status: int		# exit status, or minus the signal
    seconds: float
    timed_out: bool
    usage: Usage = Usage()


def child_env(cache: Path, **extra: str) -> Dict[str, str]:
    """Return the environment for children that build and boot.

    cache: the cache folder; temporary files and what thinks it has a home
    folder stay in it.
    extra: more variables.
    """
    env = {key: value for key, value in os.environ.items()
           if key not in _SCRUB and not key.startswith(_SCRUB_PREFIX)}
    home = cache / "home"
    tmp = cache / "tmp"
    home.mkdir(parents=True, exist_ok=True)
    tmp.mkdir(parents=True, exist_ok=True)
    env.update(LC_ALL="C", HOME=str(home), TMPDIR=str(tmp),
               PYTHONDONTWRITEBYTECODE="1", KBUILD_BUILD_USER="gate", KBUILD_BUILD_HOST="gate",
               GIT_OPTIONAL_LOCKS="0", DEBIAN_FRONTEND="noninteractive")
    env.update(extra)
    return env


def _die_with_parent() -> None:
    """In the child: get SIGTERM if the gate itself is killed beyond help."""
    try:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    except (OSError, AttributeError):
        pass


def start(argv: Sequence[str], *, log: Path, env: Mapping[str, str],
          cwd: Optional[Path] = None) -> "subprocess.Popen[bytes]":
    """Start argv in a process group of its own, with all output going to log.

    Returns the process.  Raises GateError if the program cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as out:
        out.write(("$ " + " ".join(shlex.quote(word) for word in argv) + "\n")
                  .encode("utf-8", "surrogateescape"))
        out.flush()
        try:
            return subprocess.Popen(list(argv), stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT, cwd=cwd, env=dict(env),
                                    start_new_session=True, preexec_fn=_die_with_parent)
        except OSError as err:
            raise GateError(MACHINE, f"cannot start {argv[0]}: {err.strerror}",
                            "install it, or mend PATH", cause="host") from err


def _group_alive(pgid: int) -> bool:
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def stop(child: "subprocess.Popen[bytes]") -> bool:
    """End the child and its whole process group; first by SIGTERM, then by SIGKILL.

    Returns False if SIGKILL was needed, that is if a half-written file may be left.
    """
    deadline = time.monotonic() + _GRACE
    if _group_alive(child.pid):
        _signal_group(child.pid, signal.SIGTERM)
    while time.monotonic() < deadline:
        child.poll()
        if not _group_alive(child.pid):
            child.wait()
            return True
        time.sleep(0.02)
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()
    return False


def _signal_group(pgid: int, number: int) -> None:
    try:
        os.killpg(pgid, number)
    except (ProcessLookupError, PermissionError):
        pass


def run(argv: Sequence[str], *, log: Path, env: Mapping[str, str], cwd: Optional[Path] = None,
        timeout: float = HELPER_SECONDS, tick: Callable[[], None] = lambda: None,
        watch: Callable[[float], bool] = lambda seconds: False) -> Done:
    """Run argv to its end, log its output.

    timeout: seconds after which it is stopped, not counting those which the
    host took from it; ten times as many if the host gives it nothing at all.
    tick: called some times a second, for a progress display.
    watch: called likewise with the seconds so far; True stops the child early.
    Raises GateError if the program cannot be started or writes without an
    end; a failing program is for the caller to judge.
    """
    began = time.monotonic()
    before = log.stat().st_size if log.exists() else 0
    child = start(argv, log=log, env=env, cwd=cwd)
    load = Load(child.pid)
    timed_out = False
    sampled = began
    try:
        while True:
            try:
                child.wait(timeout=_POLL)
                break
            except subprocess.TimeoutExpired:
                pass
            tick()
            now = time.monotonic()
            if now - sampled >= _SAMPLE:
                load.sample()
                sampled = now
                _check_size(log.stat().st_size - before, argv[0], log)
            if _is_over(load, now - began, timeout):
                timed_out = True
                break
            if watch(now - began):
                break
    except Interrupted as err:
        err.clean = stop(child)
        raise
    finally:
        stop(child)
    return Done(child.returncode, time.monotonic() - began, timed_out, load.usage)


def _is_over(load: Load, seconds: float, timeout: float) -> bool:
    """Return whether a child that is up for so many seconds of wall time had its time."""
    return load.usage.fair > timeout or seconds > timeout * _STARVED_TIMES


def _check_size(size: int, program: str, log: Optional[Path] = None) -> None:
    """Raise GateError if a program's output, of size bytes, has no end."""
    if size > HELPER_BYTES:
        raise GateError(MACHINE, f"{Path(program).name} wrote more than {HELPER_BYTES >> 20} MiB",
                        "look at what it says again and again", log=log)


def capture(argv: Sequence[str], *, env: Mapping[str, str], cwd: Optional[Path] = None,
            data: Optional[bytes] = None,
            timeout: float = HELPER_SECONDS) -> "subprocess.CompletedProcess[bytes]":
    """Run a short program and return its status and output as bytes.

    timeout: as for run().
    Raises GateError if it cannot be started, or does not come to an end.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, \
            tempfile.TemporaryFile() as err:
        given.write(data or b"")
        given.seek(0)
        try:
            child = subprocess.Popen(list(argv), stdin=given, stdout=out, stderr=err,
                                     env=dict(env), cwd=cwd, start_new_session=True,
                                     preexec_fn=_die_with_parent)
        except OSError as why:
            raise GateError(MACHINE, f"cannot start {argv[0]}: {why.strerror}",
                            "install it, or mend PATH", cause="host") from why
        try:
            _bounded(child, (out, err), argv[0], timeout)
        finally:
            if child.poll() is None:
                stop(child)
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(list(argv), child.returncode, out.read(), err.read())


def _bounded(child: "subprocess.Popen[bytes]", files: Sequence[IO[bytes]], program: str,
             timeout: float) -> None:
    """Wait for the child; raise GateError if it takes too long or writes too much."""
    load = Load(child.pid)
    began = time.monotonic()
    while True:
        try:
            child.wait(timeout=_SAMPLE)
            return
        except subprocess.TimeoutExpired:
            load.sample()
        for file in files:
            _check_size(os.fstat(file.fileno()).st_size, program)
        if _is_over(load, time.monotonic() - began, timeout):
            raise GateError(MACHINE, f"{Path(program).name} did not end within {timeout:.0f} s",
                            "see what it waits for")


def foreground(argv: Sequence[str], *, env: Mapping[str, str]) -> int:
    """Run argv on the user's own terminal; return its exit status.

    Raises GateError if it cannot be started.
    """
    try:
        child = subprocess.Popen(list(argv), env=dict(env), preexec_fn=_die_with_parent)
    except OSError as err:
        raise GateError(MACHINE, f"cannot start {argv[0]}: {err.strerror}",
                        "install it, or mend PATH", cause="host") from err
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            child.terminate()	# so that it can put the terminal back
            child.wait()


def tail(log: Path, lines: int = 12) -> str:
    """Return the last non-empty lines of a log, made safe for a terminal."""
    try:
        with open(log, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16384))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    kept = [printable(line) for line in text.splitlines() if line.strip()]
    return "\n".join(kept[-lines:])


def printable(line: str) -> str:
    """Return the line without control characters, which a guest may well write."""
    return "".join(char if char.isprintable() or char == "\t" else "?" for char in line.rstrip())


def need_space(path: Path, gib: float, what: str) -> None:
    """Raise GateError unless the file system of path has gib GiB free for what."""
    free = shutil.disk_usage(path).free / 2**30
    if free < gib:
        raise no_space(path, f"{what} needs {gib:.1f} GiB and {free:.1f} GiB are free")


def no_space(path: Path, detail: str, log: Optional[Path] = None) -> GateError:
    """Return the error for a full file system under path."""
    return GateError(MACHINE, f"no space left on device for {path}: {detail}",
                     "free some space or give another --cache or --out", log=log, fatal=True,
                     cause="host")


def from_os_error(err: OSError, path: Path) -> GateError:
    """Return the GateError for an OSError met while working under path."""
    if err.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(path, err.strerror or "write failed")
    where = err.filename if err.filename is not None else path
    return GateError(MACHINE, f"{where}: {err.strerror or err}",
                     "mend the machine or give another folder", fatal=True, cause="host")


class CacheLock:
    """One gate at a time in one cache: a context manager around flock."""

    def __init__(self, cache: Path, say: Callable[[str], None]) -> None:
        self._path = cache / "lock"
        self._say = say
        self._fd = -1

    def __enter__(self) -> "CacheLock":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as err:
            if err.errno in (errno.ENOSPC, errno.EDQUOT):
                raise from_os_error(err, self._path.parent) from err
            raise GateError(UNUSABLE, f"cannot use cache {self._path.parent}: {err.strerror}",
                            "give a folder that you can write to with --cache") from err
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            self._say(f"gate: another gate (pid {holder or 'unknown'}) works in "
                      f"{self._path.parent}; waiting until it is done")
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        return self

    def __exit__(self, *args: object) -> None:
        os.close(self._fd)


def _interrupt(number: int, frame: Optional[FrameType]) -> None:
    # A second Ctrl-C must not tear the cleaning up apart.
    for each in _ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise Interrupted(signal.Signals(number).name)


_ENDING: List[signal.Signals] = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def catch_signals() -> None:
    """Turn SIGINT, SIGTERM and SIGHUP into Interrupted."""
    for number in _ENDING:
        # nohup and background jobs of scripts have a reason to ignore some.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
