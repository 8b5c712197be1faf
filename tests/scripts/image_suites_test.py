#!/usr/bin/env python3
"""Hostile archives are never unpacked as root. Nothing is: all programs that the script would start are stand-ins."""
import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALL_BUT_HOSTILE = "run local names build registry trust interop crash"


class Script(unittest.TestCase):
    def started(self, uid, *suites):
        """What scripts/test_images.sh starts for this user: lines `run SUITE...` and `as_user SUITE...`."""
        with tempfile.TemporaryDirectory() as directory:
            top = pathlib.Path(directory)
            for name in ("scripts", "tests/image", "bin"):
                (top / name).mkdir(parents=True)
            for name in ("test_images.sh", "lib.sh"):
                shutil.copy(ROOT / "scripts" / name, top / "scripts")
            for name in ("install_dependencies.sh", "build.sh"):
                (top / "scripts" / name).write_text("exit 0\n")
            (top / "scripts/as_user.sh").write_text('shift 2\necho as_user "$@" >>"$LOG"\n')
            for name, text in (("id", f"echo {uid}\n"), ("python3", 'shift\necho run "$@" >>"$LOG"\n')):
                (top / "bin" / name).write_text("#!/bin/sh\n" + text)
                (top / "bin" / name).chmod(0o755)
            environment = {"PATH": f"{top}/bin:/usr/bin:/bin", "LOG": str(top / "log")}
            subprocess.run(["sh", str(top / "scripts/test_images.sh"), *suites], env=environment, check=True, timeout=60)
            return (top / "log").read_text().splitlines()

    def test_root_hands_hostile_to_an_ordinary_user(self):
        self.assertEqual(self.started(0, "hostile"), ["as_user hostile"])
        self.assertEqual(self.started(0, "crash", "hostile", "local"), ["run crash local", "as_user hostile"])
        self.assertEqual(self.started(0), [ALL_BUT_HOSTILE, "as_user local names hostile build"])

    def test_other_named_suites_run_as_they_are(self):
        self.assertEqual(self.started(0, "crash", "interop"), ["run crash interop"])

    def test_ordinary_user_runs_all(self):
        self.assertEqual(self.started(1000, "hostile", "local"), ["run hostile local"])
        self.assertEqual(self.started(1000), ["run local names hostile build registry trust interop crash"])


class Runner(unittest.TestCase):
    def run_as(self, uid, *words):
        spec = importlib.util.spec_from_file_location("image_run", ROOT / "tests/image/run.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        errors = io.StringIO()
        # Without caisson-image nothing runs: status 77.
        with mock.patch.object(os, "geteuid", lambda: uid), mock.patch.dict(os.environ, {"CAISSON_BIN": "/nowhere/caisson"}), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            return module.main(list(words)), errors.getvalue()

    def test_root_is_refused(self):
        for words in (["hostile"], ["local", "hostile"], ["--gtest_output=xml:/dev/null", "hostile"]):
            status, message = self.run_as(0, *words)
            self.assertEqual(status, 1)
            self.assertIn("hostile does not run as root", message)

    def test_others_are_not(self):
        self.assertEqual(self.run_as(0, "local")[0], 77)
        self.assertEqual(self.run_as(0)[0], 77)
        self.assertEqual(self.run_as(1000, "hostile")[0], 77)


if __name__ == "__main__":
    unittest.main()
