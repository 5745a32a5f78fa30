# SPDX-License-Identifier: GPL-2.0
"""What scripts/series is made of.

patchfile, git, cover and owned know the parts of a series; refresh and
takeback write patches/; choose, baserepo, address and mails make mails of
it; lint, static, tooling, walk and b4run check it; tables holds the data.
"""
