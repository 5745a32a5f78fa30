# SPDX-License-Identifier: GPL-2.0
"""From a kernel to logs: UML processes and QEMU guests.

In: an image.  Out: a console, a results port, how long it took.
"""
