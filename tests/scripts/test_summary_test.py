#!/usr/bin/env python3
"""The last line of `make test` is correct, also for tests that crashed or did not run."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/test_summary.py"


def ctest_file(*entries):
    return "<testsuite>" + "".join(entries) + "</testsuite>"


def entry(name, status="run", inner=""):
    return f'<testcase name="{name}" status="{status}">{inner}</testcase>'


def gtest_file(*cases):
    return '<testsuites><testsuite name="S">' + "".join(cases) + "</testsuite></testsuites>"


def case(name, inner="", result="completed", status="run"):
    return f'<testcase name="{name}" classname="S" status="{status}" result="{result}">{inner}</testcase>'


SKIPPED = case("skips", '<skipped message="x_test.cc:9&#x0A;no node here&#x0A;"/>', result="skipped")


class Summary(unittest.TestCase):
    def summarise(self, files, must_run=""):
        with tempfile.TemporaryDirectory() as directory:
            for name, content in files.items():
                (pathlib.Path(directory) / name).write_text(content)
            environment = dict(os.environ, CAISSON_MUST_RUN=must_run)
            done = subprocess.run([sys.executable, SCRIPT, directory], capture_output=True, text=True, env=environment,
                                  check=False)
            return done.returncode, done.stdout

    def assert_closing_line(self, output, line):
        self.assertEqual(output.splitlines()[-1], line)

    def test_counts_single_cases(self):
        status, output = self.summarise(
            {"ctest.xml": ctest_file(entry("a")), "a.xml": gtest_file(case("one"), case("two"), SKIPPED)})
        self.assertEqual(status, 0)
        self.assert_closing_line(output, "2 passed, 0 failed, 1 skipped")
        self.assertIn("a: S.skips: no node here", output)

    def test_must_run_turns_skips_into_failures(self):
        files = {"ctest.xml": ctest_file(entry("a")), "a.xml": gtest_file(case("one"), SKIPPED)}
        status, output = self.summarise(files, must_run="1")
        self.assertEqual(status, 1)
        self.assert_closing_line(output, "1 passed, 1 failed, 0 skipped")

    def test_failed_case(self):
        failing = case("fails", '<failure message="expected 1"/>')
        status, output = self.summarise(
            {"ctest.xml": ctest_file(entry("a", "fail")), "a.xml": gtest_file(case("one"), failing)})
        self.assertEqual(status, 1)
        self.assert_closing_line(output, "1 passed, 1 failed, 0 skipped")
        self.assertIn("expected 1", output)

    def test_crashed_program_is_one_failure(self):
        crash = entry("a", "fail", '<failure message="SEGFAULT"/>')
        status, output = self.summarise({"ctest.xml": ctest_file(crash, entry("script"))})
        self.assertEqual(status, 1)
        self.assert_closing_line(output, "1 passed, 1 failed, 0 skipped")
        self.assertIn("SEGFAULT", output)

    def test_leak_at_exit_is_a_failure_though_all_cases_passed(self):
        status, output = self.summarise(
            {"ctest.xml": ctest_file(entry("a", "fail")), "a.xml": gtest_file(case("one"))})
        self.assertEqual(status, 1)
        self.assert_closing_line(output, "1 passed, 1 failed, 0 skipped")

    def test_missing_program_is_a_failure(self):
        gone = entry("a", "notrun", '<skipped message="Unable to find executable"/>')
        status, output = self.summarise({"ctest.xml": ctest_file(gone, entry("b"))})
        self.assertEqual(status, 1)
        self.assert_closing_line(output, "1 passed, 1 failed, 0 skipped")

    def test_skipped_script(self):
        skipped = entry("a", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/><system-out>no sudo\n</system-out>')
        status, output = self.summarise({"ctest.xml": ctest_file(skipped, entry("b"))})
        self.assertEqual(status, 0)
        self.assert_closing_line(output, "1 passed, 0 failed, 1 skipped")
        self.assertIn("a: no sudo", output)

    def test_nothing_ran_is_no_success(self):
        self.assertEqual(self.summarise({"ctest.xml": ctest_file()})[0], 1)
        self.assertEqual(self.summarise({})[0], 1)


if __name__ == "__main__":
    unittest.main()
