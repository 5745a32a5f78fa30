# SPDX-License-Identifier: GPL-2.0
"""Debian's linux-source packages: found and downloaded with apt, installed never."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Mapping, Optional, Tuple

from gatelib.base import proc
from gatelib.base.errors import MACHINE, UNUSABLE, GateError
from gatelib.base.workspace import Workspace
from gatelib.data.trees import SUITES, SUITES_OTHER

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_OS_RELEASE = Path("/etc/os-release")
_NOT_THERE = re.compile(r"Unable to locate package|has no installation candidate"
                        r"|Can't find a source to download|No packages found")


def version_of(deb: Path) -> str:
    """Return the version in the name of a .deb file."""
    return deb.name.split("_")[1]


def cached_deb(debs: Path, package: str) -> Optional[Path]:
    """Return the package's .deb file that was downloaded last, or None."""
    found = sorted(debs.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def fetch(series: str, work: Workspace) -> Path:
    """Return the .deb file of linux-source-SERIES, downloaded if it is not in the cache.

    Raises GateError(UNUSABLE) if there is no such package, GateError(MACHINE)
    if apt could not find out or could not download.
    """
    package = f"linux-source-{series}"
    debs = work.cache / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    there = cached_deb(debs, package)
    if there is not None:
        return there
    if not shutil.which("apt-get"):
        raise GateError(UNUSABLE, f"no apt here to get {package} with",
                        "give an unpacked kernel or a git checkout with --tree PATH")
    log = work.out / f"{package}-download.log"
    log.unlink(missing_ok=True)
    deb = _download(package, debs, log, work, work.env)
    reached = False
    if deb is None:
        for suite in SUITES.get(series, SUITES_OTHER):
            private, ok = _private_apt(suite, log, work)
            reached = reached or ok
            deb = _download(package, debs, log, work, private) if ok else None
            if deb is not None:
                break
    if deb is not None:
        return deb
    if reached and _NOT_THERE.search(proc.tail(log)):
        raise GateError(UNUSABLE, f"Debian has no package {package}",
                        "choose another series or give --tree PATH", log=log)
    raise GateError(MACHINE, f"could not download {package}",
                    "check the network and apt's configuration", log=log, tail=proc.tail(log),
                    cause="host")


def _download(package: str, debs: Path, log: Path, work: Workspace,
              env: Mapping[str, str]) -> Optional[Path]:
    """Download the package with the apt that env configures; None if that fails."""
    with tempfile.TemporaryDirectory(dir=debs, prefix="new-") as folder:
        # root's apt downloads as another user unless it is told not to.
        status = work.run(["apt-get", "-o", "APT::Sandbox::User=root", "download", package],
                           log, cwd=Path(folder), env=env)
        deb = cached_deb(Path(folder), package)
        if status != 0 or deb is None:
            return None
        # apt writes a colon of an epoch as %3a, so the name is the file's.
        final = debs / deb.name
        os.replace(deb, final)
        return final


def mirror(targets: str, codename: str) -> Optional[str]:
    """Return the address of the Debian mirror that the machine itself uses.

    targets: output of apt-get indextargets, lines of "SITE RELEASE".
    codename: the machine's own release, preferred over others.
    """
    pairs = [line.split() for line in targets.splitlines()]
    sites = [(site, release) for site, release in (pair for pair in pairs if len(pair) == 2)
             if "security" not in release and "security" not in site]
    for wanted in (codename, "stable", "testing", "unstable", "sid"):
        for site, release in sites:
            if release == wanted:
                return site
    return None


def _codename() -> str:
    try:
        text = _OS_RELEASE.read_text()
    except OSError:
        return ""
    found = re.search(r'^VERSION_CODENAME="?(\w+)"?$', text, re.M)
    return found.group(1) if found else ""


def _private_apt(suite: str, log: Path, work: Workspace) -> Tuple[Mapping[str, str], bool]:
    """Make an apt state for one suite in the cache, and update it.

    Returns the environment that selects it, and whether the update worked.
    """
    targets = proc.capture(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)"],
                           env=work.env).stdout.decode("utf-8", "replace")
    site = mirror(targets, _codename())
    if site is None:
        raise GateError(MACHINE, f"apt here has no Debian mirror to get suite {suite} from",
                        "give an unpacked kernel or a git checkout with --tree PATH")
    state = work.cache / "apt" / suite
    for folder in (state / "lists" / "partial", state / "archives" / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    signed = f"[signed-by={_KEYRING}] " if _KEYRING.exists() else ""
    (state / "sources.list").write_text(f"deb {signed}{site} {suite} main\n")
    settings = {
        "Dir::State": state, "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status", "Dir::Cache": state,
        "Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Sandbox::User": "root", "Acquire::Languages": "none",
    }
    config = state / "apt.conf"
    config.write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))
    private = dict(work.env, APT_CONFIG=str(config))
    # Any error is one: without it, apt goes on with old lists or with none.
    status = work.run(["apt-get", "-o", "APT::Update::Error-Mode=any", "update"], log,
                       env=private)
    return private, status == 0
