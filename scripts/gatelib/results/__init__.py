# SPDX-License-Identifier: GPL-2.0
"""From logs to results, verdicts and the report.

In: logs, and what must be.  Out: lines for people, results.json for programs.
"""
