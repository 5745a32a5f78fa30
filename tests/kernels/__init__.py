# SPDX-License-Identifier: GPL-2.0
"""Tests that build and boot real kernels in the gate's cache, for some minutes.

Not part of make check; type make check-kernels.
"""
