# SPDX-License-Identifier: GPL-2.0
"""What scripts/gate is made of.

Data goes one way: tree -> patched tree -> kernel -> boot -> log -> results
-> verdict -> report.  Each step has a room: trees, kernels, guests, results;
commands goes through them.  base is what all share, and data what they all
look up.  A room imports from those before it only.
"""
