# SPDX-License-Identifier: GPL-2.0
"""scripts/series import, refresh and export, on a made-up series."""

import email.header
import email.utils
import os
import subprocess
import unittest
from pathlib import Path

from gatelib.base import proc
from serieslib.base.patchfile import read
from serieslib.mails import letters as mails_module
from serieslib.sets import folders, refresh

from .project import contents, write
from .series_project import (AUTHOR, COMMITS, HWLAT, HWLAT_FIXED, HWLAT_TEST, STAMPEDE, TICK,
                             TICK_FIXED, TICK_GATE, TICK_SPLIT, SeriesCase, commit, know_sets,
                             make_kernel, make_series, store_set)

ROOT = Path(__file__).resolve().parent.parent
# Longer than any line that git leaves in one piece.
LONG = ("The Very Long Name of a Very Long Organisation of Kernel Test Maintainers",
        "maintainers-of-the-very-long-project@users.noreply.a-very-long-host.example")


class Import(SeriesCase):
    def test_round_trip_changes_nothing(self):
        before = self.set()
        out = self.ok("import", "--set", "mainline", "--git", str(self.git.folder))
        self.assertEqual(self.set(), before)
        self.assertIn("6 patches imported to mainline, 0 files changed", out)

    def test_round_trip_of_an_exported_repository(self):
        before = self.set()
        clone = self.temp / "exported"
        self.ok("export", "--tree", str(self.tree), "--out", str(self.out), "--git", str(clone))
        self.assertTrue((clone / "kernel/time/other.c").is_file())
        out = self.ok("import", "--set", "mainline", "--git", str(clone))
        self.assertEqual(self.set(), before)
        self.assertIn("0 files changed", out)

    def test_changed_patch_and_lists_of_the_cover_letter(self):
        letter = self.set()["0000-cover-letter.patch"].decode()
        write(self.git.folder, {TICK: TICK_FIXED + "int more;\nint and_more;\n"})
        self.git.run("commit", "-q", "-am", "tick/sched: Add more")
        out = self.ok("import", "--set", "mainline", "--git", str(self.git.folder))
        after = self.set()
        self.assertIn("0007-tick-sched-Add-more.patch", after)
        self.assertIn("mainline/0007-tick-sched-Add-more.patch written", out)
        changed = after["0000-cover-letter.patch"].decode()
        self.assertIn("[PATCH 0/7] Two made-up fixes", changed)
        self.assertIn("In two paragraphs.\n", changed)
        self.assertIn("  tick/sched: Add more\n", changed)
        self.assertNotEqual(letter.split("files changed")[1], changed.split("files changed")[1])
        self.assertIn(b"[PATCH 7/7]", after["0007-tick-sched-Add-more.patch"])

    def test_dropped_patch_is_removed(self):
        git = make_series(self.temp / "fewer", self.tree, COMMITS[:5])
        out = self.ok("import", "--set", "mainline", "--git", str(git.folder))
        self.assertNotIn("0006-selftests-timers-Add-a-test.patch", self.set())
        self.assertIn("0006-selftests-timers-Add-a-test.patch removed", out)

    def test_lost_fix_is_refused(self):
        before = self.set()
        git = make_series(self.temp / "fewer", self.tree, COMMITS[1:])
        line = self.fails(2, "import", "--set", "mainline", "--git", str(git.folder))
        self.assertIn("0001-tracing-Fix-the-width.patch", line)
        self.assertEqual(self.set(), before)

    def test_configuration_of_the_repository_does_not_matter(self):
        before = self.set()
        write(self.git.folder, {".git/info/attributes": "*.c diff=cpp\n"})
        for key, value in (("diff.noprefix", "true"), ("diff.context", "9"),
                           ("format.signature", "trap"), ("format.subjectPrefix", "TRAP")):
            self.git.run("config", key, value)
        self.ok("import", "--set", "mainline", "--git", str(self.git.folder))
        self.assertEqual(self.set(), before)

    def test_shallow_clone(self):
        before = self.set()
        shallow = self.temp / "shallow"
        subprocess.run(["git", "clone", "-q", "--depth", "7", f"file://{self.git.folder}",
                        str(shallow)], check=True, env=self.git.env)
        self.ok("import", "--set", "mainline", "--git", str(shallow), "--base", "HEAD~6")
        self.assertEqual(self.set(), before)

    def test_new_set_gets_a_cover_letter_to_fill_in(self):
        know_sets(self.project, "6.1")
        self.ok("import", "--set", "6.1", "--git", str(self.git.folder))
        self.assertIn(b"*** BLURB HERE ***", self.set("6.1")["0000-cover-letter.patch"])

    def test_changed_test_is_told(self):
        commits = [*COMMITS[:4], (*COMMITS[4][:2], {"kernel/time/tick-sched_test.c": "int x;\n"}),
                   *COMMITS[5:]]
        git = make_series(self.temp / "changed", self.tree, commits)
        out = self.ok("import", "--set", "mainline", "--git", str(git.folder))
        self.assertIn("series refresh", out)

    def test_unusable(self):
        for words, what in (
                (["--git", str(self.temp / "nowhere")], "has no commit HEAD"),
                (["--git", str(self.tree)], "has no commit HEAD"),
                (["--git", str(self.git.folder), "--base", "nothing"], "has no commit nothing"),
                (["--git", str(self.git.folder), "--base", "HEAD"], "no patch on the branch")):
            self.assertIn(what, self.fails(2, "import", "--set", "mainline", *words))
        self.assertIn("invalid choice", self.fails(2, "import", "--set", "6.9", "--git", "."))

    def test_empty_commit(self):
        before = contents(self.project / "patches")
        self.git.run("commit", "-q", "--allow-empty", "-m", "tracing: Do nothing")
        self.assertIn("has no diff", self.fails(2, "import", "--set", "mainline", "--git",
                                                str(self.git.folder)))
        self.assertEqual(contents(self.project / "patches"), before)

    def test_merge_and_wrong_base(self):
        self.git.run("checkout", "-q", "-b", "side", "base")
        commit(self.git, "tracing: Be aside", "", {"side.c": "int side;\n"})
        self.assertIn("is no ancestor", self.fails(
            2, "import", "--set", "mainline", "--git", str(self.git.folder), "--base", "main"))
        self.git.run("merge", "-q", "main")
        self.assertIn("a merge", self.fails(
            2, "import", "--set", "mainline", "--git", str(self.git.folder)))


class Refresh(SeriesCase):
    def test_nothing_to_do(self):
        before = contents(self.project / "patches")
        self.assertIn("0 files changed in 1 sets", self.ok("refresh"))
        self.assertEqual(contents(self.project / "patches"), before)

    def test_changed_test_is_what_git_would_write(self):
        changed = {"kernel/trace/trace_hwlat_test.c": HWLAT_TEST * 7}
        write(self.project, {"kunit/trace_hwlat_test.c": HWLAT_TEST * 7})
        before = self.set()
        out = self.ok("refresh", "--set", "mainline")
        commits = [(subject, tags, {**files, **{name: text for name, text in changed.items()
                                                if name in files}})
                   for subject, tags, files in COMMITS]
        store_set(self.project, "6.12", make_series(self.temp / "again", self.tree, commits))
        after = self.set()
        for name, data in self.set("6.12").items():
            if name != "0000-cover-letter.patch":
                self.assertEqual(after[name], data)
        # The text of the letter is the old one, and its lists are the new ones.
        letter = after["0000-cover-letter.patch"]
        self.assertEqual(letter.split(b"Subject:")[1],
                         self.set("6.12")["0000-cover-letter.patch"].split(b"Subject:")[1])
        self.assertEqual({name for name in after if after[name] != before[name]},
                         {"0000-cover-letter.patch", "0004-tracing-Add-tests.patch"})
        self.assertEqual(out.count("written"), 2)

    def test_executable_and_missing_line_feed(self):
        write(self.project, {"selftests/timers/stampede.c": STAMPEDE.rstrip("\n")})
        (self.project / "selftests/timers/stampede.c").chmod(0o755)
        self.ok("refresh")
        patch = self.set()["0006-selftests-timers-Add-a-test.patch"]
        self.assertIn(b"new file mode 100755\n", patch)
        self.assertIn(b"\\ No newline at end of file\n", patch)
        self.assertIn("0 files changed", self.ok("refresh"))

    def test_damaged_patch_is_named_and_nothing_is_written(self):
        store_set(self.project, "6.12", self.git)
        path = self.project / "patches/6.12/0003-tick-sched-Use-another-update.patch"
        path.write_text(path.read_text().replace("-\treturn tick_due() + tick1;",
                                                 "-\treturn something_else;"))
        write(self.project, {"kunit/trace_hwlat_test.c": "int other;\n"})
        before = contents(self.project / "patches")
        self.assertIn("6.12/0003-tick-sched-Use-another-update.patch", self.fails(2, "refresh"))
        self.assertEqual(contents(self.project / "patches"), before)

    def test_missing_kunit_file(self):
        (self.project / "kunit/trace_hwlat_test.c").unlink()
        self.assertIn("trace_hwlat_test.c is missing", self.fails(2, "refresh"))

    def test_real_patches_put_together_again_are_the_same(self):
        for name in folders.names(ROOT):
            for each, data in folders.load(ROOT, name).items():
                mail = read(data)
                self.assertEqual(mail.text().encode("utf-8", "surrogateescape"), data)
                self.assertEqual(refresh._spliced(mail, mail), data, f"{name}/{each}")

    def test_real_sets_are_up_to_date(self):
        (self.cache / "tmp").mkdir(parents=True)
        for name in folders.names(ROOT):
            fresh = refresh.refreshed(ROOT, name, proc.child_env(self.cache),
                                      self.cache / "tmp").files
            for each, data in folders.load(ROOT, name).items():
                self.assertEqual(fresh[each], data, f"{name}/{each}: type scripts/series refresh")


class Export(SeriesCase):
    def export(self, *words, tree=None, out=None):
        return self.ok("export", "--tree", str(tree or self.tree), "--out", str(out or self.out),
                       *words)

    def test_thread(self):
        self.export()
        first, *rest = self.mails()
        self.assertEqual(first["Subject"], "[PATCH 0/6] Two made-up fixes")
        self.assertIsNone(first["In-Reply-To"])
        self.assertEqual(len({mail["Message-ID"] for mail in [first, *rest]}), 7)
        for number, mail in enumerate(rest, 1):
            self.assertTrue(mail["Subject"].startswith(f"[PATCH {number}/6] "))
            self.assertEqual(mail["In-Reply-To"], first["Message-ID"])
            self.assertEqual(mail["References"], first["Message-ID"])
            self.assertTrue(mail["Message-ID"].endswith("@example.org>"))

    def test_addressees(self):
        self.export()
        for mail in self.mails():
            # The sender is a maintainer, too, and does not write to himself.
            self.assertEqual(mail["To"], "Main Tainer <main@example.org>")
            people = email.utils.getaddresses([mail["Cc"]])
            self.assertEqual(people, [("", "list@example.org"), ("Sue Gester", "sue@example.org")])

    def test_same_series_has_same_mails(self):
        self.export()
        self.export(out=self.temp / "again")
        self.assertEqual((self.out / "series.mbox").read_bytes(),
                         (self.temp / "again" / "series.mbox").read_bytes())
        self.export("--sender", "Some Body <some@example.org>", out=self.temp / "other")
        ids = [{mail["Message-ID"] for mail in self.mails(out)}
               for out in (self.out, self.temp / "other")]
        self.assertFalse(ids[0] & ids[1])

    def test_another_sender(self):
        self.export("--sender", "Some Body <some@example.org>", "-v", "3")
        first, *rest = self.mails()
        self.assertEqual(first["From"], "Some Body <some@example.org>")
        self.assertIn("[PATCH v3 0/6]", first["Subject"])
        for mail in rest:
            self.assertEqual(mail["From"], "Some Body <some@example.org>")
            body = mail.get_payload()
            self.assertTrue(body.startswith(f"From: {AUTHOR[0]} <{AUTHOR[1]}>\n\n"), body[:80])
            self.assertIn(f"Signed-off-by: {AUTHOR[0]} <{AUTHOR[1]}>\n"
                          "Signed-off-by: Some Body <some@example.org>\n---\n", body)
        self.assertTrue((self.out / "v3-0001-tracing-Fix-the-width.patch").is_file())

    def test_author_sends_without_a_second_sign_off(self):
        self.export("--sender", f"{AUTHOR[0]} <{AUTHOR[1]}>")
        for mail in self.mails()[1:]:
            self.assertEqual(mail.get_payload().count("Signed-off-by:"), 1)
            self.assertNotIn("\nFrom:", mail.get_payload())

    def test_very_long_sender_is_not_folded(self):
        sender = f"{LONG[0]} <{LONG[1]}>"
        self.export("--sender", sender)
        for path in sorted(self.out.glob("*.patch")):
            self.assertIn(f"\nFrom: {sender}\n", path.read_text(), path.name)

    def test_sender_that_is_not_ascii(self):
        letter = self.project / "patches/mainline/0000-cover-letter.patch"
        letter.write_text(letter.read_text().replace("In two", "In größer two"))
        self.export("--sender", "Jürgen Öttinger-Großmann von und zu Änderung <j@example.org>")
        for mail in self.mails():
            line = mail["From"]
            self.assertTrue(line.isascii() and "\n" not in line, line)
            self.assertEqual(mail["Content-Type"], "text/plain; charset=UTF-8")
            name, address = email.utils.parseaddr(
                str(email.header.make_header(email.header.decode_header(line))))
            self.assertEqual((name, address), ("Jürgen Öttinger-Großmann von und zu Änderung",
                                               "j@example.org"))

    def test_fix_in_the_tree_is_left_out(self):
        out = self.export(tree=make_kernel(self.temp / "fixed", hwlat=HWLAT_FIXED))
        self.assertEqual(out, "")	# what it says is for people, not for pipes
        first, *rest = self.mails()
        self.assertEqual(len(rest), 5)
        self.assertIn("[PATCH 0/5]", first["Subject"])
        self.assertIn("Linux 6.12.7 has these already, so they are left out:\n\n"
                      "  tracing: Fix the width\n", first.get_payload())
        self.assertNotIn(HWLAT, "".join(mail.get_payload() for mail in rest))

    def test_broken_state_has_all(self):
        self.export("--state", "broken", tree=make_kernel(self.temp / "fixed", HWLAT_FIXED,
                                                          TICK_GATE))
        self.assertEqual(len(self.mails()), 7)

    def test_gate_is_replaced_by_the_set_made_for_it(self):
        tree = make_kernel(self.temp / "gate", HWLAT_FIXED, TICK_GATE)
        line = self.fails(2, "export", "--tree", str(tree), "--out", str(self.out))
        self.assertIn("no series fits", line)
        self.assertFalse(self.out.exists())
        commits = [("tick/sched: Split the gate", "", {TICK: TICK_SPLIT}), *COMMITS[2:]]
        store_set(self.project, "7.3", make_series(self.temp / "git-gate", tree, commits))
        self.export(tree=tree)
        self.assertIn("tick/sched: Split the gate", self.mails()[1]["Subject"])
        self.assertEqual(len(self.mails()), 6)

    def test_base_commit_of_a_git_tree(self):
        git = make_series(self.temp / "linux-git", self.tree, [])
        self.export(tree=git.folder)
        head = git.text("rev-parse", "HEAD")
        self.assertTrue(self.mails()[0].get_payload().endswith(f"\nbase-commit: {head}\n"))
        # Not so where the base is not what is committed.
        write(git.folder, {HWLAT: HWLAT_FIXED})
        self.export(tree=git.folder, out=self.temp / "dirty")
        self.assertNotIn("base-commit", self.mails(self.temp / "dirty")[0].get_payload())

    def test_tree_is_left_alone(self):
        git = make_series(self.temp / "linux-git", self.tree, [])
        before = contents(git.folder)
        self.export(tree=git.folder)
        self.assertEqual(contents(git.folder), before)

    def test_range_diff_against_the_older_version(self):
        old = [*COMMITS[:2], (COMMITS[2][0], COMMITS[2][1], {TICK: TICK_FIXED + "int old;\n"}),
               *COMMITS[3:]]
        store_set(self.project, "mainline/v1", make_series(self.temp / "old", self.tree, old))
        self.export("-v", "2")
        letter = self.mails()[0].get_payload()
        self.assertIn("Range-diff against v1:", letter)
        self.assertIn("int old;", letter)
        self.assertNotIn("int old;", "".join(mail.get_payload() for mail in self.mails()[1:]))

    def test_git_am_takes_its_mbox(self):
        self.export("--sender", f"{LONG[0]} <{LONG[1]}>")
        want = self.git.text("rev-parse", "HEAD^{tree}")
        self.git.run("checkout", "-q", "base")
        self.git.run("am", "-q", str(self.out / "git-am.mbox"))
        self.assertEqual(self.git.text("rev-parse", "HEAD^{tree}"), want)
        self.assertEqual(self.git.text("log", "-1", "--format=%an <%ae>"),
                         f"{AUTHOR[0]} <{AUTHOR[1]}>")

    def test_unusable(self):
        self.export()
        before = contents(self.out)
        line = self.fails(2, "export", "--tree", str(self.tree), "--out", str(self.out))
        self.assertIn("has mails in it", line)
        self.assertEqual(contents(self.out), before)
        for words, what in ((["--sender", "nobody"], "Name <mail>"),
                            (["--sender", ""], "Name <mail>"),
                            (["--sender", "A <a@b.c>, D <d@e.f>"], "Name <mail>"),
                            (["--sender", "A <a@b.c> trailing"], "Name <mail>"),
                            (["--sender", "... <a@b.c>"], "Name <mail>"),
                            (["--sender", "A <j@ex\xe4mple.org>"], "Name <mail>"),
                            (["--sender", os.fsdecode(b"J\xff <a@b.c>")], "Name <mail>"),
                            (["--git", str(self.temp / "new")], "are both"),
                            (["--sender", "No\nBody <a@b.c>"], "Name <mail>"),
                            (["-v", "0"], "at least 1"), (["--git", str(self.tree)], "--git")):
            self.assertIn(what, self.fails(2, "export", "--tree", str(self.tree), "--out",
                                           str(self.temp / "new"), *words))
        self.assertIn("--out", self.fails(2, "export", "--tree", str(self.tree)))
        self.assertFalse((self.temp / "new").exists())
        (self.temp / "file").write_text("")
        for out in ("file", "file/below"):
            self.assertIn("no folder", self.fails(2, "export", "--tree", str(self.tree), "--out",
                                                  str(self.temp / out)))
        (self.temp / "box").mkdir()
        (self.temp / "box/git-am.mbox").write_text("kept")
        self.assertIn("has mails", self.fails(2, "export", "--tree", str(self.tree), "--out",
                                              str(self.temp / "box")))
        self.assertEqual((self.temp / "box/git-am.mbox").read_text(), "kept")

    def test_missing_cover_letter_and_script(self):
        words = ("export", "--tree", str(self.tree), "--out", str(self.out))
        (self.project / "patches/mainline/0000-cover-letter.patch").unlink()
        self.assertIn("0000-cover-letter.patch", self.fails(2, *words))
        (self.tree / "scripts/get_maintainer.pl").unlink()
        self.assertIn("scripts/get_maintainer.pl", self.fails(2, *words))


class Headers(unittest.TestCase):
    def test_mail_address(self):
        self.assertTrue(mails_module.address.header("Jürgen <j@example.org>").startswith("=?utf-8?"))
        self.assertEqual(mails_module.address.header("list@example.org"), "list@example.org")


if __name__ == "__main__":
    unittest.main()
