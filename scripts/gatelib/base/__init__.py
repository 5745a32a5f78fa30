# SPDX-License-Identifier: GPL-2.0
"""What all rooms share: errors, children, the workspace, the packages of the machine.

In: nothing of the gate.  Out: GateError, Workspace, and programs run within bounds.
"""
