# SPDX-License-Identifier: GPL-2.0
"""Whether a maintainer could take a series: one check a module."""
