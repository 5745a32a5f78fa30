# SPDX-License-Identifier: GPL-2.0
"""What all rooms share: git, the parts of a mail, the report, the tables."""
