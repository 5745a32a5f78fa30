# SPDX-License-Identifier: GPL-2.0
"""scripts/series check: what passes, and every kind of patch that must not."""

import quopri
import re
import shutil
import unittest
from collections import Counter
from pathlib import Path

from serieslib.checks import compiled, lint, tooling, walk

from .project import FAKES, write
from .series_project import (COMMITS, HWLAT, HWLAT_BROKEN, HWLAT_FIXED, STAMPEDE, TICK, TICK_FIXED,
                             TICK_SPLIT, SeriesCase, know_sets, make_kernel, make_series, store_set)

FIX = "0001-tracing-Fix-the-width.patch"
SPLIT = "0002-tick-sched-Split-the-update.patch"
USE = "0003-tick-sched-Use-another-update.patch"
TESTS = "0004-tracing-Add-tests.patch"
# Git takes the address for a name of 60 characters and more.
LONG = ("The Very Long Name of a Very Long Kernel Test Organisation",
        "maintainers-of-the-very-long-project@users.noreply.a-very-long-host.example")


def changed(number, subject=None, tags=None, **files):
    """Return COMMITS with one of them changed."""
    commits = list(COMMITS)
    old = commits[number]
    commits[number] = (subject or old[0], old[1] if tags is None else tags,
                       {**old[2], **files.get("files", {})})
    return commits


class CheckCase(SeriesCase):
    def setUp(self):
        super().setUp()
        bin_folder = self.temp / "bin"
        bin_folder.mkdir()
        shutil.copy(FAKES / "dpkg-query", bin_folder)	# nothing is to be installed by a test
        self.bin = bin_folder

    def env(self, **extra):
        env = super().env(**extra)
        return dict(env, PATH=f"{self.bin}:{env['PATH']}", GATE_TEST_INSTALLED="")

    def check(self, status, *words):
        """Run the check, which has to end with status; return its output."""
        done = self.series("check", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        last = done.stdout.splitlines()[-1]
        self.assertRegex(last, r"^series: \d+ passed, \d+ failed, \d+ skipped$")
        self.assertEqual(bool(re.search(r", 0 failed,", last)), status != 1, last)
        return done.stdout

    def complaint(self, output, patch, check):
        """Return the one complaint about the patch by the check."""
        lines = [line for line in output.splitlines()
                 if line.startswith("FAILED ") and patch in line and f": {check}: " in line]
        self.assertEqual(len(lines), 1, output)
        self.assertIn("; ", lines[0])	# what to do about it
        return lines[0]

    def only(self, output, patch, check):
        """Like complaint(), and there is no other one."""
        self.assertEqual(output.count("FAILED "), 1, output)
        return self.complaint(output, patch, check)

    def spoil(self, name, before, after):
        """Change the text of a patch in the set."""
        path = self.project / "patches" / "mainline" / name
        text = path.read_text()
        self.assertIn(before, text)
        path.write_text(text.replace(before, after, 1))

    def store(self, commits):
        """Make the set of other commits, as if they had been imported."""
        store_set(self.project, "mainline",
                  make_series(self.temp / "other", self.tree, commits))


class Files(CheckCase):
    def test_good(self):
        output = self.check(0)
        self.assertNotIn("FAILED", output)

    def test_trailing_space(self):
        self.store(changed(2, files={TICK: TICK_FIXED.replace("- tick1;", "- tick1; ")}))
        line = self.only(self.check(1), USE, "no trailing space")
        self.assertIn(TICK, line)

    def test_trailing_space_in_the_message(self):
        self.spoil(USE, "too long.\n", "too long. \n")
        self.only(self.check(1), USE, "no trailing space")

    def test_changed_kunit_file_not_regenerated(self):
        write(self.project, {"kunit/trace_hwlat_test.c": "int changed;\n"})
        output = self.check(1)
        line = self.complaint(output, TESTS, "equals kunit/ and selftests/")
        self.assertIn("kunit/trace_hwlat_test.c", line)
        self.assertIn("scripts/series refresh", line)
        self.ok("refresh")
        self.check(0)

    def test_missing_sign_off(self):
        self.spoil(SPLIT, "Signed-off-by: Pat Author <pat@example.org>\n", "")
        self.assertIn("Signed-off-by", self.only(self.check(1), SPLIT, "tags"))

    def test_sign_off_of_somebody_else(self):
        self.spoil(SPLIT, "Signed-off-by: Pat Author <pat@", "Signed-off-by: Pat Other <other@")
        self.only(self.check(1), SPLIT, "tags")
        self.spoil(SPLIT, "Signed-off-by: Pat Other <other@", "Signed-off-by: Pat Other <pat@")
        self.only(self.check(1), SPLIT, "tags")

    def test_tags_that_are_none(self):
        self.spoil(FIX, "Suggested-by: ", "Fixes: 1234 bad\n\nSuggested-by: ")
        self.assertIn("Fixes: 1234 bad stands above", self.only(self.check(1), FIX, "tags"))

    def test_wrong_prefix(self):
        self.store(changed(1, subject="sched: Split the update"))
        line = self.only(self.check(1), "0002-sched-Split-the-update.patch", "subject")
        self.assertIn('"tick/sched: "', line)

    def test_quoted_printable(self):
        path = self.project / "patches/mainline" / USE
        head, gap, body = path.read_text().partition("\n\n")
        path.write_bytes(head.encode() + b"\nContent-Transfer-Encoding: quoted-printable" + b"\n\n"
                         + quopri.encodestring(body.encode()))
        self.assertIn("quoted-printable", self.complaint(self.check(1), USE, "plain text"))
        # The same as an archive shows it, without the header.
        path.write_bytes((head + gap).encode() + quopri.encodestring(body.encode()))
        self.assertIn("quoted-printable", self.complaint(self.check(1), USE, "not mangled"))

    def test_base64_and_line_ends(self):
        self.spoil(FIX, "\n\n", "\nContent-Transfer-Encoding: base64\n\n")
        self.complaint(self.check(1), FIX, "plain text")
        path = self.project / "patches/mainline" / SPLIT
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        self.complaint(self.check(1), SPLIT, "plain text")

    def test_missing_patch(self):
        (self.project / "patches/mainline" / SPLIT).unlink()
        output = self.check(1)
        self.complaint(output, USE, "numbering")

    def test_patches_that_do_not_apply_one_on_the_other(self):
        self.spoil(USE, "-\treturn tick_due() + tick1;", "-\treturn something_else;")
        self.assertIn(USE, self.only(self.check(1), "mainline", "applies in order"))

    def test_new_file_that_is_not_the_projects(self):
        self.store(changed(4, files={"kernel/time/other_test.c": "int other;\n"}))
        line = self.only(self.check(1), "0005-", "equals kunit/ and selftests/")
        self.assertIn("kernel/time/other_test.c", line)

    def test_selftest_in_no_patch(self):
        write(self.project, {"selftests/timers/more.c": "int more;\n"})
        line = self.only(self.check(1), "0006-", "equals kunit/ and selftests/")
        self.assertIn("selftests/timers/more.c", line)

    def test_files_that_get_lines_in_every_tree(self):
        self.store(changed(5, files={"tools/testing/selftests/timers/config": "CONFIG_A=y\n"}))
        write(self.project, {"selftests/README": "for people\n"})
        self.check(0)

    def test_test_changed_by_a_later_patch(self):
        self.store(changed(5, files={"kernel/time/tick-sched_test.c": "int again;\n"}))
        self.complaint(self.check(1), "0006-", "equals kunit/ and selftests/")

    def test_mode(self):
        (self.project / "kunit/tick-sched_test.c").chmod(0o755)
        self.complaint(self.check(1), "0005-", "equals kunit/ and selftests/")

    def test_cover_letter(self):
        path = self.project / "patches/mainline/0000-cover-letter.patch"
        good = path.read_text()
        path.write_text(good.replace("Two made-up fixes", "*** SUBJECT HERE ***"))
        self.only(self.check(1), "0000-cover-letter.patch", "cover letter")
        path.write_text(good.replace("tracing: Fix the width", "tracing: Fix another"))
        self.assertIn("series refresh", self.only(self.check(1), "0000-cover-letter.patch",
                                                  "up to date"))
        path.unlink()
        self.only(self.check(1), "0000-cover-letter.patch", "cover letter")

    def test_what_git_would_not_write(self):
        for name, before, after, said in (
                # git takes all from such a line on for a diff.
                (FIX, "Suggested-by: ", "diff -u says so.\n\nSuggested-by: ", "another message"),
                (FIX, "Suggested-by: ", "Index: of it\n\nSuggested-by: ", "another message"),
                (USE, " 1 file changed", " 7 files changed", "another diffstat"),
                (USE, "---\n kernel", "---\na note\n kernel", "another diffstat"),
                (USE, "Subject: ", "Content-Type: text/plain; charset=ISO-8859-1\nSubject: ",
                 "another header"),
                (USE, "Date: ", "Dated: ", "another header")):
            good = (self.project / "patches/mainline" / name).read_text()
            self.spoil(name, before, after)
            self.assertIn(said, self.complaint(self.check(1), name, "up to date"))
            (self.project / "patches/mainline" / name).write_text(good)
        with (self.project / "patches/mainline" / USE).open("a") as file:
            file.write("_____\nA list's footer\n")
        self.assertIn("another end", self.complaint(self.check(1), USE, "up to date"))

    def test_white_space_that_git_complains_of(self):
        for text, said in ((STAMPEDE + "\n", "new blank line at EOF"),
                           (STAMPEDE.replace("\treturn", " \treturn"), "space before tab")):
            write(self.project, {"selftests/timers/stampede.c": text})
            self.ok("refresh")
            self.assertIn(said, self.only(self.check(1), "0006-", "up to date"))

    def test_patch_under_another_name(self):
        folder = self.project / "patches/mainline"
        (folder / USE).rename(folder / "0003-another.patch")
        self.assertIn(USE, self.complaint(self.check(1), "0003-another.patch", "up to date"))

    def test_cover_letter_that_cannot_be_sent(self):
        path = self.project / "patches/mainline/0000-cover-letter.patch"
        good = path.read_bytes()
        for before, after, said in (
                (b"Why and what for.\n\nIn two paragraphs.", b"", "it says nothing"),
                (b"Why and", b"Wh\xfd and", "no UTF-8"), (b"Why and", b"TODO and", "still says"),
                (b"Why and", b"Why=20\nand", "quoted-printable"),
                (b"Why and", b"From here and", "begins a mail"),
                (b"Two made-up fixes", b"Two fixes " * 9, "the subject has more than"),
                (b"Why and", b"Why \nand", "ends in a space")):
            self.assertIn(before, good)
            path.write_bytes(good.replace(before, after, 1))
            self.assertIn(said, self.complaint(self.check(1), path.name, "cover letter"))

    def test_text_of_the_cover_letter_is_not_lost(self):
        path = self.project / "patches/mainline/0000-cover-letter.patch"
        good = path.read_text()
        changes = "Changes since v1 (3):\n  one, two, three\n\nAnd (1):\n  more\n\n"
        for where in ("Why and", "Pat Author (6):"):
            text = good.replace(where, changes + where, 1)
            path.write_text(text)
            self.check(0)
            self.assertIn("0 files", self.ok("refresh"))
            self.assertEqual(path.read_text(), text)
        path.write_text(good + "\nChanges since v1: none.\n")
        self.assertIn("below its lists", self.only(self.check(1), "mainline", "applies in order"))
        self.assertIn("below its lists", self.fails(2, "refresh"))

    def test_missing_set(self):
        know_sets(self.project, "6.1")
        self.assertIn("there is no set 6.1", self.only(self.check(1), "6.1", "is there"))
        self.assertIn("there is no set 6.1", self.fails(2, "refresh"))
        shutil.copytree(self.project / "patches/mainline", self.project / "patches/6.1",
                        ignore=shutil.ignore_patterns("000[1-9]*"))
        self.assertIn("no patch in it", self.only(self.check(1), "6.1", "is there"))

    def test_what_belongs_to_no_set(self):
        folder = self.project / "patches"
        shutil.copytree(folder / "mainline", folder / "6.6")
        (folder / "mainline/fix-extra.patch").write_text("")
        output = self.check(1)
        self.assertEqual(output.count("FAILED "), 2)
        self.assertIn("6.6 belongs to no set", output)
        self.assertIn("mainline/fix-extra.patch belongs to no set", output)

    def test_groups_that_need_a_tree(self):
        self.assertIn("--tree", self.fails(2, "check", "--only", "builds"))
        self.assertIn("no folder", self.fails(2, "check", "--tree", str(self.temp / "nowhere")))


class Lint(CheckCase):
    """One patch, spoiled in every way."""

    def findings(self, *changes, name=FIX):
        text = self.set()[name].decode()
        for before, after in changes:
            self.assertIn(before, text)
            text = text.replace(before, after, 1)
        return {check: found for check, found in lint.lint(text.encode("latin-1")).items() if found}

    def test_each(self):
        sign = "Signed-off-by: Pat Author <pat@example.org>\n"
        suggested = "Suggested-by: Sue Gester <sue@example.org>\n"
        link = "Link: https://lore.kernel.org/r/made-up@example.org\n"
        for check, before, after in (
                ("subject", "tracing: Fix the width", "tracing: fix the width"),
                ("subject", "tracing: Fix the width", "tracing: Fix the width."),
                ("subject", "tracing: Fix the width", "tracing: Fix" + " the width" * 8),
                ("line length", "What is wrong", "What is wrong" * 6),
                ("line length", "What is wrong, and what is done about it, in a line or two that "
                 "are not\ntoo long.\n\n", ""),
                ("plain text", "What is wrong", "From what is wrong"),
                ("plain text", "What is wrong", "What \xe9 is wrong"),
                ("plain text", "diff --git", "diff --hand"),
                ("tags", "From: Pat Author <", f"From: {'Pat Author ' * 6}<"),
                ("tags", suggested + link, link + suggested),
                ("tags", link + sign, sign + link),
                ("tags", suggested, "Suggested-at: Sue Gester <sue@example.org>\n"),
                ("tags", suggested, "Fixes: 1234 (too short)\n"),
                ("tags", "https://lore", "lore"),
                ("tags", "too long.\n\n", "too long.\n"),
                ("no trailing space", "too long.\n", "too long.\t\n"),
                ("not mangled", "int line7;", "int line7=3D1;")):
            found = self.findings((before, after))
            self.assertEqual(list(found), [check], (before, after, found))
            self.assertTrue(all(each.what and each.todo for each in found[check]))
        self.assertEqual(self.findings(), {})

    def test_what_may_be_long(self):
        for line in ("> " + "x" * 90, "    " + "x" * 90, "See https://" + "x" * 90):
            self.assertEqual(self.findings(("too long.\n", f"too long.\n{line}\n")), {})
        long = f"Suggested-by: {'Long ' * 20} <sue@example.org>\n"
        self.assertEqual(self.findings(("Suggested-by: Sue Gester <sue@example.org>\n", long)), {})


class Builds(CheckCase):
    def check_builds(self, status, *words, tree=None):
        return self.check(status, "--tree", str(tree or self.tree), "--only", "builds", *words)

    def test_good(self):
        output = self.check_builds(0)
        for name in ("base", FIX, SPLIT, USE, TESTS):
            for flavour in ("um", "x86_64"):
                self.assertIn(f"broken {name}: build as {flavour} ...", output)

    def test_patch_that_does_not_build_alone(self):
        # What it calls comes with the next patch only.
        early = TICK_SPLIT.replace("return tick0;", "return tick_late();")
        late = TICK_FIXED.replace("int tick_due", "static int tick_late(void)\n{\n\treturn 1;\n}\n"
                                  "\nint tick_due").replace("return tick0;", "return tick_late();")
        early = early.replace("int tick_due", "#define tick_late 1 +\nint tick_due").replace(
            "#define tick_late 1 +", "#ifndef LATE\n#error tick_late comes later\n#endif")
        self.store([COMMITS[0], (COMMITS[1][0], "", {TICK: early}),
                    (COMMITS[2][0], COMMITS[2][1], {TICK: late}), *COMMITS[3:]])
        output = self.check_builds(1, "--flavour", "x86_64")
        line = self.only(output, SPLIT, "builds alone as x86_64")
        self.assertIn("read ", line)
        # What comes after it cannot be compared with it, and is said to be so.
        self.assertEqual(output.count("skipped "), 2)

    def test_new_warning(self):
        self.store(changed(2, files={TICK: TICK_FIXED.replace(
            "\treturn tick_due() -", "\tint unused;\n\n\treturn tick_due() -")}))
        line = self.only(self.check_builds(1, "--flavour", "um"), USE, "no new warning as um")
        self.assertIn("unused variable", line)

    def test_selftest_that_does_not_build_or_warns(self):
        name = "tools/testing/selftests/timers/stampede.c"
        for text, said in (("int main(void)\n{\n\treturn what;\n}\n", "'what' undeclared"),
                           ("int main(void)\n{\n\tint x;\n\n\treturn 0;\n}\n",
                            "unused variable")):
            store_set(self.project, "mainline", make_series(
                self.temp / said.replace(" ", ""), self.tree, changed(5, files={name: text})))
            line = self.only(self.check_builds(1, "--flavour", "x86_64"), "0006-",
                             "selftests build")
            self.assertIn(said, line)

    def test_old_warning_is_no_new_one(self):
        warned = HWLAT_BROKEN.replace("\treturn line0", "\tint unused;\n\n\treturn line0")
        self.tree = make_kernel(self.temp / "warned", hwlat=warned)
        self.store(changed(0, files={HWLAT: "int moved;\n" + warned.replace("line0 + line1",
                                                                           "line0")}))
        write(self.project, {"patches/reverse/hwlat.patch": self.reversed(warned)})
        self.check_builds(0, "--flavour", "um", tree=self.tree)

    def reversed(self, warned):
        start = make_kernel(self.temp / "warned-fixed")
        write(start, {HWLAT: "int moved;\n" + warned.replace("line0 + line1", "line0")})
        git = make_series(self.temp / "warned-git", start, [("Revert it", "", {HWLAT: warned})])
        return git.run("format-patch", "--stdout", "base..HEAD").decode()

    def test_base_that_does_not_build(self):
        write(self.tree, {"kernel/time/tick-sched.c": (self.tree / TICK).read_text(),
                          "Makefile": (self.tree / "Makefile").read_text().replace(
                              "cat $^", "false $^")})
        done = self.series("check", "--tree", str(self.tree), "--only", "builds")
        self.assertEqual(done.returncode, 3)
        self.assertIn("the base does not build", done.stderr)

    def test_option_that_comes_with_a_patch(self):
        write(self.project, {".kunitconfig": "CONFIG_KUNIT=y\nCONFIG_A_TEST=y\n"})
        self.check_builds(0, "--flavour", "um")
        logs = (self.cache / "out").glob("*.log")
        self.assertTrue(any("fragments-A_TEST" in path.read_text() for path in logs))

    def test_series_that_does_not_apply(self):
        write(self.tree, {HWLAT: "int rewritten;\n"})
        output = self.check_builds(1)
        self.assertIn("a series applies", output)
        self.assertIn(f"{HWLAT}, hunk at line", output)

    def test_states_seen_before_are_not_built_again(self):
        tree = make_kernel(self.temp / "fixed", hwlat=HWLAT_FIXED)
        output = self.check_builds(0, "--flavour", "um", tree=tree)
        self.assertIn("fixed broken base: build", output)
        self.assertNotIn("as-is base: build", output)

    def test_patch_of_selftests_only_makes_no_new_kernel(self):
        output = self.check_builds(0)
        (name,) = [each for each in self.set() if each.startswith("0006-")]
        self.assertIn(f"{name}: build selftests", output)
        self.assertNotIn(f"{name}: build as", output)


class Tests(CheckCase):
    def test_tests_need_no_fix(self):
        moved = "int for_tests;\n" + TICK_FIXED
        self.store(changed(4, files={TICK: moved}))
        self.assertNotIn("FAILED", self.check(0, "--tree", str(self.tree), "--only", "builds",
                                              "--flavour", "um"))
        # A change in the middle of what the fix changes.
        near = TICK_FIXED.replace("return tick_due() - tick1;", "return tick_due() - tick1 - 0;")
        store_set(self.project, "mainline", make_series(
            self.temp / "near", self.tree, changed(4, files={TICK: near})))
        output = self.check(1, "--tree", str(self.tree), "--only", "builds", "--flavour", "um")
        self.assertIn("tests apply without the fixes: mainline/0005-", output)

    def test_checkpatch_and_accepted(self):
        write(self.tree, {"scripts/checkpatch.pl": "#!/bin/sh\nfor mail; do :; done\n"
                          "case $mail in\n"
                          "*0002*) echo 'x:3: WARNING:MADE_UP: this is no good'; exit 1;;\n*0003*)\n"
                          "echo \"x:4: WARNING:UNKNOWN_COMMIT_ID: Unknown commit id "
                          "'a1ff03cd6fb9'\"; exit 1;;\nesac\n",
                          "scripts/kernel-doc": "#!/bin/sh\n! grep -q 'int tick_due' $2 || "
                          "echo \"$2:9: warning: not described\"\n"})
        for name in ("checkpatch.pl", "kernel-doc"):
            (self.tree / "scripts" / name).chmod(0o755)
        output = self.check(1, "--tree", str(self.tree), "--only", "tools")
        lines = [line for line in output.splitlines() if line.startswith("FAILED ")]
        self.assertIn("MADE_UP this is no good", lines[0])
        self.assertIn("line 3 of the mail", lines[0])
        self.assertTrue(all(SPLIT in line for line in lines), lines)
        self.assertIn("kernel-doc says of kernel/time/tick-sched.c", lines[1])
        self.assertIn(f"accepted linux broken {USE}"[9:], output.replace(str(self.tree), "linux"))

    def test_checkpatch_that_lacks_its_words(self):
        write(self.tree, {"scripts/checkpatch.pl": "#!/bin/sh\necho 'No codespell typos will be "
                          "found - file x: No such file or directory' >&2\n",
                          "scripts/kernel-doc": "#!/bin/sh\n"})
        for name in ("checkpatch.pl", "kernel-doc"):
            (self.tree / "scripts" / name).chmod(0o755)
        output = self.check(1, "--tree", str(self.tree), "--only", "tools")
        self.assertIn("cannot look at all: No codespell typos", output)


@unittest.skipUnless(shutil.which("b4"), "b4 is not installed")
class Mails(CheckCase):
    author = LONG	# git folds the header of one with such a name

    def test_all_take_the_mails(self):
        output = self.check(0, "--tree", str(self.tree), "--only", "mails")
        self.assertTrue(output.endswith(" 0 failed, 0 skipped\n"), output)

    def test_mails_that_git_does_not_take(self):
        # In the set everything is well, and the mails are made of something else.
        mails = self.project / "scripts/serieslib/mails/letters.py"
        text = mails.read_text()
        self.assertIn('return b"\\n".join(mails.values())', text)
        mails.write_text(text.replace('return b"\\n".join(mails.values())',
                                      'return b"\\n".join(mails.values()).replace(b"-\\t", b"-x")'))
        output = self.check(1, "--tree", str(self.tree), "--only", "mails")
        self.assertIn(": git am: ", output)
        self.assertIn("b4 am: git am does not take the mails", output)


class Parsers(unittest.TestCase):
    def test_checkpatch(self):
        said = tooling.parse("a.patch:12: WARNING:TYPE: something: else\nnoise\n"
                             "CHECK:OTHER: at no line\n")
        self.assertEqual(said, [("12", "TYPE", "something: else"), ("", "OTHER", "at no line")])

    def test_compiler_output(self):
        src = Path("/src")
        log = ("$ make W=1\n  CHECK   /src/kernel/a.c\n/src/kernel/a.c:3:9: warning: symbol x\n"
               "/src/kernel/a_test.c:4: warning: in a comment\n/src/kernel/a.c:3:9: note: more\n"
               "  CC      kernel/a.o\n  CC [M]  kernel/b.o\n/src/include/c.h:1:1: error: bad\n")
        said = compiled.parse(log, src)
        self.assertEqual(said, {"kernel/a": Counter({"kernel/a.c: symbol x": 1,
                                                     "kernel/a_test.c: in a comment": 1}),
                                "kernel/b": Counter({"include/c.h: bad": 1})})
        before = {"kernel/a": Counter({"kernel/a.c: symbol x": 1})}
        self.assertEqual(compiled.new(before, said), {
            "kernel/a": ["kernel/a_test.c: in a comment"], "kernel/b": ["include/c.h: bad"]})

    def test_fragment_without_options(self):
        text = "# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_AB=y\n# a comment\n"
        self.assertEqual(walk.without(text, {"A", "B"}), "CONFIG_AB=y\n# a comment\n")


if __name__ == "__main__":
    unittest.main()
