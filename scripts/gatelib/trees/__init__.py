# SPDX-License-Identifier: GPL-2.0
"""From what the user names to a tree with its files as one state wants them.

In: a kernel series or a path.  Out: Tree and Plan.
"""
