# SPDX-License-Identifier: GPL-2.0
"""Debian packages that the project needs."""

from __future__ import annotations

from typing import NamedTuple, Tuple

from gatelib.data.kernels import FLAVOURS


class Package(NamedTuple):
    """A Debian package, and the program or header by which it is known elsewhere."""
    name: str
    program: str
    flavours: Tuple[str, ...] = FLAVOURS


PACKAGES = (
    Package("build-essential", "gcc"),
    Package("git", "git"),
    Package("rsync", "rsync"),
    Package("xz-utils", "xz"),
    Package("python3", "python3"),
    Package("bc", "bc"),
    Package("flex", "flex"),
    Package("bison", "bison"),
    Package("cpio", "cpio"),
    Package("kmod", "depmod"),
    Package("libelf-dev", "", ("x86_64",)),
    Package("libssl-dev", "", ("x86_64",)),
    Package("qemu-system-x86", "qemu-system-x86_64", ("x86_64",)),
    # No flavour: what selftests are run with, a picture is drawn with, and
    # scripts/series checks patches with.
    Package("busybox-static", "busybox", ("selftests",)),
    Package("gnuplot-nox", "gnuplot", ("plot",)),
    Package("b4", "b4", ("series",)),
    Package("sparse", "sparse", ("series",)),
    Package("codespell", "codespell", ("series",)),
    Package("perl", "perl", ("series",)),
    # The shape of results.json, in the tests.
    Package("python3-jsonschema", "", ("tests",)),
    Package("python3-sphinx", "sphinx-build", ("docs",)),
)
