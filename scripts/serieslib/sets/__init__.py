# SPDX-License-Identifier: GPL-2.0
"""The folders of patches/: read, refreshed from kunit/ and selftests/, imported from a branch."""
