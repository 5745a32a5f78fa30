# SPDX-License-Identifier: GPL-2.0
"""What scripts/series is made of.

sets keeps patches/, mails makes mails of it, checks judges them; base is
what all share.
"""
