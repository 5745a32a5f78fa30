# SPDX-License-Identifier: GPL-2.0
"""The tables: everything one edits to add a tree, a flavour, a fix or a test.

No code but the rows' types.
"""
