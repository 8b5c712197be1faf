#!/usr/bin/env python3
"""The runner of a test bundle reports as `make test` does."""
import importlib.util
import json
import lzma
import pathlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}
GTEST = ("""<testsuites><testsuite name='S'><testcase name='a' classname='S' status='run' result='completed'/>"""
         """<testcase name='b' classname='S' status='run' result='skipped'><skipped message='no node'/></testcase>"""
         """</testsuite></testsuites>""")


def suite(name, command, **more):
    return {"name": name, "command": command, "timeout": 20, "cost": 1, "processors": 1, "serial": False, "labels": [],
            "skip_code": 77, "environment": [], **more}


class Bundle(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def bundle(self, tests, architecture=None):
        root = self.directory / "root"
        (root / "scripts").mkdir(parents=True)
        (root / "build").mkdir()
        shutil.copy(ROOT / "scripts/test_summary.py", root / "scripts")
        (root / "gtest.xml").write_text(GTEST)
        (root / "bundle.json").write_text(json.dumps(
            {"architecture": architecture or ARCHITECTURE[platform.machine()], "tests": tests}))
        with lzma.open(self.directory / "files.tar.xz", "wb") as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(root, arcname=".")
        with zipfile.ZipFile(self.directory / "bundle.pyz", "w") as whole:
            whole.write(ROOT / "tests/bundle/run.py", "__main__.py")
            whole.write(self.directory / "files.tar.xz", "files.tar.xz")
        return self.directory / "bundle.pyz"

    def run_bundle(self, tests, *options, **how):
        return subprocess.run([sys.executable, self.bundle(tests, **how), *options], capture_output=True, text=True,
                              check=False)

    def test_last_line_is_that_of_make_test(self):
        done = self.run_bundle([
            suite("cases", ["sh", "-c", "cp @ROOT@/gtest.xml @ROOT@/build/test-results/cases.xml"]),
            suite("fails", ["sh", "-c", "echo the reason; exit 1"]),
            suite("skips", ["sh", "-c", "echo no browser; exit 77"]),
            suite("hangs", ["sleep", "60"], timeout=1),
            suite("alone", ["sh", "-c", "test $VALUE = x"], serial=True, environment=["VALUE=x"]),
            suite("needs", ["no-such-program"]),
        ])
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 2 failed, 3 skipped", done.stdout + done.stderr)
        self.assertEqual(done.returncode, 1)
        for line in ("skipped  needs: missing program: no-such-program", "skipped  skips: no browser",
                     "skipped  cases: S.b: no node", "failed  hangs: timeout", "failed  fails: failed (1)"):
            self.assertIn(line, done.stdout)

    def test_suites_can_be_left_out_with_a_reason(self):
        (self.directory / "slow").write_text("# comment\nslow too slow in an emulated machine\n")
        done = self.run_bundle([suite("slow", ["false"]), suite("quick", ["true"]), suite("other", ["false"])],
                               "--without", str(self.directory / "slow"), "--filter", "slow|quick")
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed, 1 skipped", done.stdout + done.stderr)
        self.assertIn("skipped  slow: too slow in an emulated machine", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_another_architecture_is_an_error(self):
        other = "arm64" if platform.machine() == "x86_64" else "amd64"
        done = self.run_bundle([suite("one", ["true"])], architecture=other)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("this bundle is for", done.stderr)


class Making(unittest.TestCase):
    def test_paths_of_this_machine_are_replaced(self):
        spec = importlib.util.spec_from_file_location("make", ROOT / "tests/bundle/make.py")
        make = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(make)
        build = make.SOURCE / "build"
        self.assertEqual(make.movable({"c": [f"{build}/caisson", f"--x={make.SOURCE}/docs", f"{make.SOURCE}2/x"]}, build),
                         {"c": ["@ROOT@/build/caisson", "--x=@ROOT@/docs", f"{make.SOURCE}2/x"]})


if __name__ == "__main__":
    unittest.main()
