# SPDX-License-Identifier: GPL-2.0
"""What a user can type, and the run that goes through all rooms.

In: words.  Out: an exit status.
"""
