# SPDX-License-Identifier: GPL-2.0
"""What scripts/gate is made of.

Data goes one way: tree -> patched tree -> kernel -> boot -> log -> results
-> verdict -> report.  Each step has a module of its own, and what they all
look up stands in tables.py.
"""
