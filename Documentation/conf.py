# SPDX-License-Identifier: GPL-2.0
"""Sphinx: make docs."""

project = "hwlat and tick/sched: fixes, tests and gate"
copyright = "GPL-2.0"  # pylint: disable=redefined-builtin
html_theme = "alabaster"
exclude_patterns = ["_build"]
