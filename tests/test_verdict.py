# SPDX-License-Identifier: GPL-2.0
"""Every result against every expectation, and what the gate makes of it."""

import unittest
from pathlib import Path

from gatelib.base.errors import HOLDS, MACHINE, UNUSABLE, VERDICT, GateError, blamed
from gatelib.base.load import Usage
from gatelib.data.causes import CAUSES
from gatelib.results import report, verdict
from gatelib.results.evidence import Evidence, Result
from gatelib.results.expectations import Expectations, Line

RED = Evidence({"waiters": "63", "cpus": "64"}, True, "")


def line(kind, case="suite.case", flavour=""):
    return Line(case, flavour, kind, f"made-up-{kind}.txt:7", "made-up")


def result(status, evidence=RED, reason=""):
    return Result("suite", "case", status, reason, evidence)


class Fails(unittest.TestCase):
    """A case that is listed in a -fails.txt."""

    def judged(self, status, evidence=RED):
        return verdict.judge_case(result(status, evidence), line("fails"))

    def refused(self, wanted, status, evidence=RED):
        judged = self.judged(status, evidence)
        self.assertEqual(judged.outcome, verdict.FAILED)
        self.assertIn(wanted, judged.why)

    def test_red_is_as_it_must(self):
        self.assertEqual(self.judged("FAIL").outcome, verdict.PASSED)

    def test_pass_names_the_line(self):
        self.refused("remove the line made-up-fails.txt:7", "PASS")

    def test_skip_is_no_proof(self):
        self.refused("was skipped and is to fail by made-up-fails.txt:7", "SKIP")

    def test_crash_is_no_proof(self):
        for status in ("ERROR", "TIMEOUT", "", "None"):
            self.refused("has status", status)

    def test_red_without_an_assertion(self):
        self.refused("without a failed assertion", "FAIL", RED._replace(asserted=False))

    def test_red_without_a_figure(self):
        self.refused("without a measured figure", "FAIL", RED._replace(figures={}))


class Others(unittest.TestCase):
    def test_must_pass(self):
        self.assertEqual(verdict.judge_case(result("PASS"), None).outcome, verdict.PASSED)
        for status in ("FAIL", "SKIP", "ERROR", "odd"):
            self.assertEqual(verdict.judge_case(result(status), None).outcome, verdict.FAILED)

    def test_red_says_what_was_measured_and_what_would_make_it_known(self):
        why = verdict.judge_case(result("FAIL"), None, ["tick-absent"]).why
        self.assertIn("63 of 64 CPUs waited", why)
        self.assertIn("if that is known of this tree: --expect tick-absent", why)
        self.assertNotIn("--expect", verdict.judge_case(result("FAIL"), None).why)

    def test_figures_without_words_of_their_own(self):
        self.assertEqual(verdict.measured(result("FAIL", Evidence({"odd": "7"}, True, ""))),
                         "odd=7")

    def test_skips(self):
        self.assertEqual(verdict.judge_case(result("SKIP"), line("skips")).outcome,
                         verdict.SKIPPED)
        for status in ("PASS", "FAIL", "ERROR"):
            judged = verdict.judge_case(result(status), line("skips"))
            self.assertEqual(judged.outcome, verdict.FAILED)
            self.assertIn("remove the line made-up-skips.txt:7", judged.why)

    def test_flakes_never_decide(self):
        for status in ("PASS", "FAIL", "SKIP", "ERROR"):
            self.assertEqual(verdict.judge_case(result(status), line("flakes")).outcome,
                             verdict.FLAKED)


class Judge(unittest.TestCase):
    def judge(self, results, *lines):
        return verdict.judge(results, "um", Expectations(lines, ()),
                             {"suite": ("case", "other"), "absent": ("case",)}, {},
                             ["suite", "absent"])

    def test_declared_case_that_did_not_run(self):
        judged = self.judge([result("PASS")], line("fails", "suite.other"))
        self.assertEqual([each.result.case for each in judged if each.outcome == verdict.FAILED],
                         ["other"])
        self.assertIn("did not run at all; it is listed in made-up-fails.txt:7", judged[-1].why)

    def test_line_of_another_flavour(self):
        judged = self.judge([result("FAIL")], line("fails", flavour="x86_64"))
        self.assertEqual(judged[0].outcome, verdict.FAILED)
        judged = self.judge([result("FAIL")], line("fails", flavour="um"))
        self.assertEqual(judged[0].outcome, verdict.PASSED)


class Status(unittest.TestCase):
    def cell(self, *outcomes, error=None, problems=()):
        verdicts = [verdict.Verdict(result("PASS"), "pass", each, "") for each in outcomes]
        return report.Cell("6.12", "package", "6.12.7", "as-is", "um", {}, ["tick-absent"],
                           verdicts=verdicts, logs={"suite": Path("log")}, error=error,
                           problems=[report.Failure(cause, "x", Path("log"))
                                     for cause in problems])

    def status(self, *cells):
        run = report.Run(list(cells))
        self.assertRegex(report.show(run)[-1], r"^gate: \d+ passed, \d+ failed, \d+ skipped$")
        return run.status()

    def test_holds(self):
        self.assertEqual(self.status(self.cell(verdict.PASSED, verdict.SKIPPED)), HOLDS)

    def test_nothing_is_no_pass(self):
        self.assertEqual(self.status(), VERDICT)
        self.assertEqual(self.status(self.cell()), VERDICT)
        self.assertEqual(self.status(self.cell(verdict.SKIPPED)), VERDICT)
        self.assertEqual(self.status(self.cell(verdict.FLAKED)), VERDICT)

    def test_kernel_is_to_blame(self):
        good = self.cell(verdict.PASSED)
        self.assertEqual(self.status(good, self.cell(verdict.FAILED)), VERDICT)
        for cause, status in CAUSES.items():
            wanted = MACHINE if cause in ("harness", "host") else VERDICT
            self.assertEqual(status, wanted, cause)
            self.assertEqual(self.status(good, self.cell(verdict.PASSED, problems=[cause])),
                             wanted)
            self.assertEqual(self.status(good, self.cell(error=blamed(cause, "x", "y"))), wanted)

    def test_unusable_outweighs_failures(self):
        bad = self.cell(verdict.FAILED)
        self.assertEqual(self.status(bad, self.cell(error=GateError(UNUSABLE, "x"))), UNUSABLE)

    def test_what_is_expected_is_said(self):
        lines = report.show(report.Run([self.cell(verdict.PASSED)]))
        self.assertIn("6.12: 6.12.7 from package; as-is expects tick-absent", lines)

    def test_starved_host_is_said(self):
        cell = self.cell(verdict.PASSED)
        for usage, said in ((Usage(10, 1, 0, 11), False), (Usage(1, 9, 0, 1), True),
                            (Usage(10, 1, 30, 11), True)):
            cell.usage = usage
            self.assertEqual(any("the host was busy" in line for line in
                                 report.show(report.Run([cell]))), said)


if __name__ == "__main__":
    unittest.main()
