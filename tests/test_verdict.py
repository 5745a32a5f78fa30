# SPDX-License-Identifier: GPL-2.0
"""Every result in every kind of kernel, and what the gate makes of it."""

import unittest
from pathlib import Path

from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, VERDICT, GateError
from gatelib.data.tests import CASES, GUESTS, SUITES_KUNIT
from gatelib.results import report, verdict
from gatelib.results.kunit import Result
from gatelib.trees.patches import ABSENT, OURS, UPSTREAM

BROKEN = {"hwlat": ABSENT, "tick": ABSENT}
FIXED = {"hwlat": OURS, "tick": OURS}
MAINLINE = {"hwlat": UPSTREAM, "tick": UPSTREAM}


def one(where, **wanted):
    """Return the first row of the table that is a witness with, or without, a reason to skip."""
    for row in CASES:
        if row.fix and (where in row.may_skip) == wanted["skips"]:
            return row
    raise LookupError(where)


def outcome(row, status, flavour, present):
    return verdict.judge_case(Result(row.suite, row.case, status), flavour, present).outcome


class Witness(unittest.TestCase):
    def test_must_fail_without_the_fix(self):
        for row in CASES:
            if row.fix:
                self.assertEqual(outcome(row, "FAIL", "x86_64", BROKEN), verdict.PASSED)
                verdicts = verdict.judge_case(Result(row.suite, row.case, "PASS"), "x86_64", BROKEN)
                self.assertEqual(verdicts.outcome, verdict.FAILED)
                self.assertIn("teeth", verdicts.why)

    def test_must_pass_with_the_fix(self):
        for row in CASES:
            for present in (FIXED, MAINLINE):
                self.assertEqual(outcome(row, "PASS", "x86_64", present), verdict.PASSED)
                self.assertEqual(outcome(row, "FAIL", "x86_64", present), verdict.FAILED)

    def test_follows_its_own_fix_only(self):
        present = {"hwlat": UPSTREAM, "tick": ABSENT}
        for row in CASES:
            wanted = verdict.PASSED if row.fix == "tick" else verdict.FAILED
            self.assertEqual(outcome(row, "FAIL", "x86_64", present), wanted)

    def test_skip_only_where_the_table_allows_it(self):
        may, must = one("um", skips=True), one("um", skips=False)
        for present in (BROKEN, FIXED):
            self.assertEqual(outcome(may, "SKIP", "um", present), verdict.SKIPPED)
            self.assertEqual(outcome(may, "SKIP", "x86_64", present), verdict.FAILED)
            self.assertEqual(outcome(must, "SKIP", "um", present), verdict.FAILED)

    def test_skip_for_upstream_only_where_upstream_is(self):
        row = one("upstream", skips=True)
        self.assertEqual(outcome(row, "SKIP", "x86_64", MAINLINE), verdict.SKIPPED)
        for present in (BROKEN, FIXED):
            self.assertEqual(outcome(row, "SKIP", "x86_64", present), verdict.FAILED)

    def test_crash_is_no_proof(self):
        for status in ("ERROR", "TIMEOUT", "", "None"):
            for present in (BROKEN, FIXED, MAINLINE):
                self.assertEqual(outcome(CASES[0], status, "x86_64", present), verdict.FAILED)

    def test_missing_case_of_the_table(self):
        results = [Result(suite, "plain", "PASS") for suite in SUITES_KUNIT]
        verdicts = verdict.judge(results, "um", BROKEN, SUITES_KUNIT)
        self.assertEqual(sum(each.outcome == verdict.FAILED for each in verdicts),
                         len([row for row in CASES if row.suite in SUITES_KUNIT]))


class Plain(unittest.TestCase):
    def test_must_pass_always(self):
        for present in (BROKEN, FIXED, MAINLINE):
            for status, wanted in (("PASS", verdict.PASSED), ("FAIL", verdict.FAILED),
                                   ("SKIP", verdict.FAILED), ("ERROR", verdict.FAILED)):
                verdicts = verdict.judge_case(Result("hwlat", "plain", status), "um", present)
                self.assertEqual(verdicts.outcome, wanted)


class Teeth(unittest.TestCase):
    def verdicts(self, flavour, present, status):
        return verdict.judge([Result(row.suite, row.case, status) for row in CASES], flavour,
                             present, SUITES_KUNIT)

    def test_one_flavour_is_enough(self):
        flavours = {"um": self.verdicts("um", FIXED, "SKIP"),
                    "x86_64": self.verdicts("x86_64", FIXED, "PASS")}
        self.assertEqual(verdict.toothless(flavours, FIXED, SUITES_KUNIT), [])

    def test_no_witness_ran(self):
        lines = verdict.toothless({"um": self.verdicts("um", FIXED, "SKIP")}, FIXED, SUITES_KUNIT)
        self.assertEqual(len(lines), 2)
        self.assertIn("hwlat", lines[0])

    def test_crashed_witness_did_not_run(self):
        lines = verdict.toothless({"um": self.verdicts("um", FIXED, "ERROR")}, FIXED, SUITES_KUNIT)
        self.assertEqual(len(lines), 2)

    def test_upstream_may_leave_none(self):
        flavours = {"um": self.verdicts("um", MAINLINE, "SKIP")}
        self.assertEqual([line for line in verdict.toothless(flavours, MAINLINE, SUITES_KUNIT)
                          if "tick" in line], [])

    def test_selftests_have_teeth_of_their_own(self):
        suites = [item.suite for guest in GUESTS for item in guest.items]
        kunit = {"x86_64": self.verdicts("x86_64", FIXED, "PASS")}
        selftests = {"x86_64": verdict.judge(
            [Result(row.suite, row.case, "PASS") for row in CASES if row.suite in suites],
            "x86_64", FIXED, suites)}
        self.assertEqual(verdict.toothless(selftests, FIXED, suites), [])
        self.assertEqual(verdict.toothless(kunit, FIXED, SUITES_KUNIT), [])
        self.assertEqual(len(verdict.toothless({"um": []}, FIXED, suites)), 2)


class Status(unittest.TestCase):
    def cell(self, *outcomes, error=None, problems=()):
        verdicts = [verdict.Verdict(Result("hwlat", "case", "PASS"), "pass", each, "")
                  for each in outcomes]
        return report.Cell("6.12", "package", "6.12.7", "as-is", "um", FIXED, BROKEN,
                           verdicts=verdicts, logs={"hwlat": Path("log")}, error=error,
                           problems=[report.Problem(what, Path("log")) for what in problems])

    def status(self, *cells, toothless=()):
        run = report.Run(list(cells), list(toothless))
        lines = report.show(run)
        self.assertRegex(lines[-1], r"^gate: \d+ passed, \d+ failed, \d+ skipped$")
        return run.status()

    def test_holds(self):
        self.assertEqual(self.status(self.cell(verdict.PASSED, verdict.SKIPPED)), HOLDS)

    def test_nothing_is_no_pass(self):
        self.assertEqual(self.status(), VERDICT)
        self.assertEqual(self.status(self.cell()), VERDICT)
        self.assertEqual(self.status(self.cell(verdict.SKIPPED)), VERDICT)

    def test_failures(self):
        good = self.cell(verdict.PASSED)
        self.assertEqual(self.status(good, self.cell(verdict.FAILED)), VERDICT)
        self.assertEqual(self.status(good, self.cell(verdict.PASSED, problems=["x"])), VERDICT)
        self.assertEqual(self.status(good, toothless=["x"]), VERDICT)

    def test_errors_outweigh_failures(self):
        bad = self.cell(verdict.FAILED)
        for status in (UNUSABLE, MACHINE):
            self.assertEqual(self.status(bad, self.cell(error=GateError(status, "x"))), status)

    def test_absent_fix_is_said_plainly(self):
        lines = report.show(report.Run([self.cell(verdict.PASSED)]))
        self.assertTrue(any("lacks fix tick" in line for line in lines))


if __name__ == "__main__":
    unittest.main()
