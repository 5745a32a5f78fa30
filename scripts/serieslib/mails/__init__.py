# SPDX-License-Identifier: GPL-2.0
"""From a tree and a set to a folder of mails."""
