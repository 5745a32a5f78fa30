# SPDX-License-Identifier: GPL-2.0
"""The programs that the gate needs: which are missing, and how they get there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Callable, List, Mapping, Sequence

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.data.packages import PACKAGES, Package


def needed(flavours: Sequence[str]) -> List[Package]:
    """Return the rows of PACKAGES that any of the flavours needs."""
    return [row for row in PACKAGES if any(flavour in row.flavours for flavour in flavours)]


def missing_debian(rows: Sequence[Package], env: Mapping[str, str]) -> List[str]:
    """Return the names of the packages in rows that dpkg does not have installed."""
    done = proc.capture(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n",
                         *[row.name for row in rows]], env=env)
    installed = {line.split()[0] for line in done.stdout.decode("utf-8", "replace").splitlines()
                 if line.endswith(" installed")}
    return [row.name for row in rows if row.name not in installed]


def missing_programs(rows: Sequence[Package]) -> List[str]:
    """Return the programs of rows that are not on PATH."""
    return [row.program for row in rows if row.program and shutil.which(row.program) is None]


def root_prefix(env: Mapping[str, str]) -> List[str]:
    """Return what goes before a command to run it as root: nothing, or sudo.

    Raises LookupError if this user cannot become root without being asked.
    """
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and proc.capture(["sudo", "-n", "true"], env=env).returncode == 0:
        return ["sudo", "-n"]
    raise LookupError("not root, and no sudo without a password")


def ensure(flavours: Sequence[str], out: Path, env: Mapping[str, str],
           say: Callable[[str], None]) -> None:
    """See to it that everything the flavours need is installed.

    out: folder for apt's log.  say: prints a line for the user.
    Raises GateError with the one command to type if it may not install.
    """
    rows = needed(flavours)
    if not (shutil.which("dpkg-query") and shutil.which("apt-get")):
        absent = missing_programs(rows)
        if absent:
            raise GateError(UNUSABLE, f"missing programs: {' '.join(absent)}",
                            "install them with this system's package manager")
        return
    names = missing_debian(rows, env)
    if not names:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *names]
    try:
        prefix = root_prefix(env)
    except LookupError as err:
        raise GateError(UNUSABLE, f"missing packages ({err})",
                        f"type: sudo {' '.join(command)}") from err
    say(f"gate: installing missing packages: {' '.join(names)}")
    _install(prefix, command, out / "apt-install.log", env)


def _install(prefix: List[str], command: List[str], log: Path, env: Mapping[str, str]) -> None:
    """Run the apt-get command; with old or no package lists only after an update."""
    log.unlink(missing_ok=True)
    if proc.run([*prefix, *command], log=log, env=env).status == 0:
        return
    proc.run([*prefix, "apt-get", "update"], log=log, env=env)
    if proc.run([*prefix, *command], log=log, env=env).status != 0:
        raise GateError(MACHINE, "apt-get could not install the missing packages",
                        f"type: sudo {' '.join(command)}", log=log, tail=proc.tail(log),
                        fatal=True, cause="host")
