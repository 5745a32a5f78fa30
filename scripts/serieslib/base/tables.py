# SPDX-License-Identifier: GPL-2.0
"""The tables of scripts/series: everything one edits to add a set, a path or a rule."""

from __future__ import annotations

from typing import NamedTuple

# How git writes the files of a set.  Changing a word here changes every file.
FORMAT = ("--zero-commit", "--no-signature", "--no-base", "--abbrev=12")

COVER = "0000-cover-letter.patch"
BASE_TAG = "base"

# Project files that the kernel tree gets, besides all of selftests/.
KUNIT = {
    "kunit/trace_hwlat_test.c": "kernel/trace/trace_hwlat_test.c",
    "kunit/tick-sched_test.c": "kernel/time/tick-sched_test.c",
}
SELFTESTS = ("selftests/", "tools/testing/selftests/")
# Below selftests/, and not for the kernel tree.
SELFTESTS_OURS = ("guest/", "README")
# New files below these can only come from the project's own copies, but for
# those of which a tree has its own and which only get lines added.
OWNED_PLACES = (r"kernel/.*_test\.c",
                r"tools/testing/selftests/(.*/)?(?!(config|settings|Makefile|\.gitignore)$)[^/]*")


class Prefix(NamedTuple):
    """What a subject begins with if the patch touches the path (first row that fits)."""
    path: str	# regular expression, matched from the start
    prefix: str


PREFIXES = (
    Prefix(r"kernel/time/", "tick/sched: "),
    Prefix(r"kernel/trace/", "tracing: "),
    Prefix(r"tools/testing/selftests/ftrace/", "selftests/ftrace: "),
    Prefix(r"tools/testing/selftests/timers/", "selftests/timers: "),
    Prefix(r"tools/testing/selftests/", "selftests: "),
    Prefix(r"Documentation/", "Documentation: "),
    Prefix(r"MAINTAINERS", "MAINTAINERS: "),
)
# Paths that come along with others and decide nothing.
PREFIX_IGNORES = (r"MAINTAINERS", r"Documentation/", r".*/Makefile", r".*/\.gitignore",
                  r".*/config")

SUBJECT_MAX = 75
LINE_MAX = 75
# git mailinfo takes a name of so many characters for none.
NAME_END = 60

# In the order in which they stand; those of one row in any order.
TAG_ORDER = (
    ("Fixes",),
    ("Reported-by", "Suggested-by"),
    ("Closes", "Link"),
    ("Co-developed-by", "Signed-off-by", "Tested-by", "Reviewed-by", "Acked-by"),
    ("Cc",),
)
# People named in these get the mails, too.
TAGS_CC = ("Suggested-by", "Reported-by", "Cc")


# Where codespell's package puts its words; checkpatch looks elsewhere.
SPELLING = "/usr/lib/python3/dist-packages/codespell_lib/data/dictionary.txt"


class Accepted(NamedTuple):
    """What checkpatch may say, and why.  proof names a check that has to confirm it."""
    type: str		# as checkpatch calls it
    match: str		# regular expression, searched in the message
    reason: str
    proof: str = ""


ACCEPTED = (
    Accepted("UNKNOWN_COMMIT_ID", r"a1ff03cd6fb9|f743435f988c",
             "the repository made of a tree has no mainline history to look the commit up in"),
    Accepted("ALLOC_WITH_SIZEOF", r"Prefer kzalloc_obj over kzalloc",
             "6.12 and 6.1 have no kzalloc_obj(), and a test has one copy for all trees"),
    Accepted("FILE_PATH_CHANGES", r"does MAINTAINERS need updating",
             "a pattern in MAINTAINERS covers every new file", "maintained"),
)
