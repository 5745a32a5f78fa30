# SPDX-License-Identifier: GPL-2.0
"""From a tree to kernels, one build folder a flavour.

In: a Tree, switched to a state.  Out: images, modules and the log of the build.
"""
