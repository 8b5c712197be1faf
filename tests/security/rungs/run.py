#!/usr/bin/env python3
"""Runs the security suite in weaker rungs, and compares the failed tests with expected.toml.

    run.py [--build DIR] [RUNG]...          runs the suite in these rungs (default: hostname, proc_bound, landlock)
    run.py --results RUNG=FILE.xml          compares an existing report of the suite
    run.py --print RUNG=FILE.xml            prints the failed tests of a report, for expected.toml

A failed test that is not listed is an undocumented loss; a listed test that passes is an error in the list. Both are
failures. The suite runs as an ordinary user: root's payload has another user id, which hides losses.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as xml
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
RUNGS_HERE = ["hostname", "proc_bound", "landlock"]
SUITE_SECONDS = 1500


def expected():
    """Returns {rung: {test: reason}}."""
    losses = {}
    for rung, groups in tomllib.loads((HERE / "expected.toml").read_text()).items():
        losses[rung] = {}
        for group in groups:
            for test in group["tests"]:
                if test in losses[rung]:
                    sys.exit(f"expected.toml: {test} is listed twice in {rung}")
                losses[rung][test] = group["reason"]
    return losses


def outcomes(report):
    """Returns the tests of a report that ran, those that were skipped, and those that failed with their messages."""
    ran, skipped, failed = set(), set(), {}
    # Messages contain output of payloads, which may not be text.
    text = Path(report).read_bytes().decode("utf-8", "replace")
    text = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "?", text)
    for case in xml.fromstring(text.encode()).iter("testcase"):
        name = f'{case.get("classname")}.{case.get("name")}'
        if case.find("skipped") is not None or case.get("status") == "notrun":
            skipped.add(name)
            continue
        ran.add(name)
        failures = [one.get("message", "") for one in case.findall("failure")]
        if failures:
            failed[name] = failures[0]
    return ran, skipped, failed


class Stage:
    """Copies the programs to a directory that an ordinary user can access."""

    def __init__(self, build, rung):
        self.path = Path(tempfile.mkdtemp(prefix="caisson-rungs-"))
        self.path.chmod(0o755)
        for name, source in {
            "caisson": build / "caisson",
            "without": build / "tests/degraded/without",
            "payload": build / "tests/payloads/payload",
            "caisson-weakened": build / "tests/security/caisson-weakened",
            "security_tests": build / "tests/security/security_tests",
            "in_rung.sh": HERE / "in_rung.sh",
        }.items():
            shutil.copy2(source, self.path / name)
            (self.path / name).chmod(0o755)
        # Used as CAISSON_BIN: tests pass arguments, and some of them an empty environment.
        wrapper = self.path / "caisson-in-rung"
        wrapper.write_text(
            f'#!/bin/sh\nexec sh {self.path}/in_rung.sh {rung} {self.path}/without {self.path}/caisson "$@"\n'
        )
        wrapper.chmod(0o755)

    def run(self, report, tests="*"):
        environment = dict(
            os.environ,
            CAISSON_BIN=str(self.path / "caisson-in-rung"),
            CAISSON_PAYLOAD=str(self.path / "payload"),
            CAISSON_WEAKENED=str(self.path / "caisson-weakened"),  # runs without the rung
            CAISSON_SOURCE_DIR=str(SOURCE),
            GTEST_FILTER=tests,
        )
        program = str(self.path / "security_tests")
        command = [program, f"--gtest_output=xml:{report}"]
        if os.geteuid() == 0:
            command = ["sh", str(SOURCE / "scripts/as_user.sh"), program, str(report)]
        report.unlink(missing_ok=True)
        done = subprocess.run(
            command, env=environment, timeout=SUITE_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if not report.exists():
            sys.exit(f"the suite wrote no report (status {done.returncode}):\n{done.stdout.decode(errors='replace')[-4000:]}")
        return outcomes(report)

    def remove(self):
        for file in self.path.iterdir():
            file.unlink()
        self.path.rmdir()


def run_rung(build, rung, results, losses):
    """Returns the result of the suite. Tests with unexpected results run again, alone, when the machine is less busy."""
    stage = Stage(build, rung)
    try:
        ran, skipped, failed = stage.run(results / f"{rung}.xml")
        again = [test for test in failed if test not in losses]
        if again:
            _, _, still = stage.run(results / f"{rung}-again.xml", ":".join(again))
            for test in again:
                if test not in still:
                    del failed[test]
    finally:
        stage.remove()
    return ran, skipped, failed


def compare(rung, ran, skipped, failed, losses):
    """Prints the differences; returns whether there are none."""
    undocumented = sorted(set(failed) - set(losses))
    passed = sorted((set(losses) & ran) - set(failed))
    unknown = sorted(set(losses) - ran - skipped)  # skipped: the host lacks a feature that the test needs
    for test in undocumented:
        print(f"{rung}: undocumented loss: {test}\n    " + failed[test].replace("\n", "\n    ")[:1200])
    for test in passed:
        print(f"{rung}: {test} passes, but is listed as failing: {losses[test]}")
    for test in unknown:
        print(f"{rung}: {test} is listed, but does not exist")
    print(f"{rung}: {len(ran)} tests, {len(failed)} lost, {len(losses)} documented")
    return not undocumented and not passed and not unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    parser.add_argument("--results", metavar="RUNG=FILE")
    parser.add_argument("--print", metavar="RUNG=FILE", dest="printed")
    parser.add_argument("rungs", nargs="*")
    options = parser.parse_args()
    if options.printed:
        for test, message in sorted(outcomes(options.printed.split("=", 1)[1])[2].items()):
            print(f'"{test}",  # {message.splitlines()[0] if message else ""}')
        return 0
    losses = expected()
    if options.results:
        rung, report = options.results.split("=", 1)
        return 0 if compare(rung, *outcomes(report), losses.get(rung, {})) else 1
    results = options.build / "test-results-rungs"
    results.mkdir(exist_ok=True)
    good = True
    for rung in options.rungs or RUNGS_HERE:
        good = compare(rung, *run_rung(options.build, rung, results, losses.get(rung, {})), losses.get(rung, {})) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
