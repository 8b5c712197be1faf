#!/usr/bin/env python3
"""Runs the Python and TypeScript examples of README.md and docs/clients.md, which start a server."""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from harness import CAISSON, PYTHON_CLIENT, ROOT, remove_home, servers_of, skip

SUITE = pathlib.Path(os.environ.get("CAISSON_CLIENT_SUITE", str(ROOT / "build" / "clients" / "clients" / "typescript")))
BLOCK = re.compile(r"^```(python|ts)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page: str, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / page).read_text()) if kind == language]


class Examples(unittest.TestCase):
    def setUp(self) -> None:
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-examples-"))
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="caisson-example-"))
        self.environment = {**os.environ, "CAISSON_HOME": str(self.home), "CAISSON_PROGRAM": CAISSON,
                            "PYTHONPATH": str(PYTHON_CLIENT / "src")}
        (self.directory / "project").mkdir()
        self.addCleanup(self.clean)

    def clean(self) -> None:
        for pid in servers_of(self.home):
            os.kill(pid, 15)
        remove_home(self.home, self.environment)
        shutil.rmtree(self.directory, ignore_errors=True)

    def run_block(self, command: list[str], name: str, text: str) -> str:
        (self.directory / name).write_text(text)
        done = subprocess.run([*command, name], cwd=self.directory, env=self.environment, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, text + done.stdout + done.stderr)
        return done.stdout

    def check_first(self, language: str) -> None:
        """Checks that the example of the README is the first one of docs/clients.md, and has five lines."""
        first = blocks("docs/clients.md", language)[0]
        self.assertEqual(blocks("README.md", language)[0], first)
        self.assertLessEqual(len([line for line in first.splitlines() if line.strip()]), 5)

    def test_PythonExamplesRun(self) -> None:
        self.check_first("python")
        outputs = [self.run_block([sys.executable, "-W", "error"], "example.py", text)
                   for text in blocks("docs/clients.md", "python")]
        self.assertEqual(outputs[0].strip(), "42")
        self.assertEqual((self.directory / "project" / "new.txt").read_text(), "1\n")

    def test_TypeScriptExamplesRun(self) -> None:
        self.check_first("ts")
        if shutil.which("node") is None or not (SUITE / "dist" / "index.js").exists():
            self.skipTest("the TypeScript client is not built; make test-clients builds it")
        (self.directory / "node_modules").mkdir()
        (self.directory / "node_modules" / "caisson-client").symlink_to(SUITE)
        outputs = [self.run_block(["node"], "example.mjs", text) for text in blocks("docs/clients.md", "ts")]
        self.assertEqual(outputs[0].strip(), "42")


if __name__ == "__main__":
    if not os.access(CAISSON, os.X_OK):
        skip(f"{CAISSON} is not built")
    unittest.main()
