#!/usr/bin/env python3
"""run_examples.py must report every kind of failing example."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("run_examples.py")


def run(page):
    """Runs one page; returns (exit status, output)."""
    with tempfile.TemporaryDirectory() as root:
        (Path(root) / "page.md").write_text(page)
        environment = dict(os.environ, CAISSON_SOURCE_DIR=root)
        done = subprocess.run([sys.executable, str(SCRIPT), "page.md"], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout


def block(language, text):
    return f"\n```{language}\n{text}\n```\n"


class RunExamples(unittest.TestCase):
    def expect(self, page, failure):
        status, output = run(page)
        if failure is None:
            self.assertEqual(status, 0, output)
        else:
            self.assertEqual(status, 1, output)
            self.assertIn(failure, output)

    def test_working_examples_pass(self):
        self.expect(block("sh", "x=1\nmkdir d && cd d") + block("sh", 'test "$x" = 1 && test "$(basename "$PWD")" = d'), None)
        self.expect(block("console", "$ echo a; echo b; echo c\na\n...\nc\n$ echo 'size 12'\nsize ..."), None)
        self.expect(block("toml", 'resources.memory = "64M"') + block("json", '{"a": 1}'), None)
        self.expect("<!-- setup: touch file -->" + block("sh", "test -f file"), None)
        self.expect("<!-- not run: needs a printer that no machine has -->" + block("sh", "false"), None)
        self.expect("<!-- owner configuration -->" + block("toml", "[ceilings]\nmemory = '1G'"), None)

    def test_commands_that_fail_are_reported(self):
        self.expect(block("sh", "true\nfalse\ntrue"), "page.md:2: status 1")
        self.expect(block("sh", "false | true"), "status 1")
        self.expect(block("sh", "caisson run --nosuch"), "--nosuch")
        self.expect("<!-- setup: false -->" + block("sh", "true"), "its setup fails")

    def test_other_output_is_reported(self):
        self.expect(block("console", "$ echo a\nb"), "expected:\nb\ngot:\na")
        self.expect(block("console", "$ echo a"), "got:\na")
        self.expect(block("console", "$ true\n..."), None)
        self.expect(block("console", "$ printf 'a\\nb\\n'\na"), "got:")

    def test_data_that_is_not_valid_is_reported(self):
        self.expect(block("toml", "resources.memroy = 1"), "did you mean resources.memory?")
        self.expect(block("json", "{"), "page.md:2")
        self.expect("<!-- owner configuration -->" + block("toml", "[ceiling]\nmemory = 1"), "ceilings")

    def test_marks_are_few_and_have_reasons(self):
        self.expect("<!-- not run: no -->" + block("sh", "false"), "says too little")
        self.expect(("<!-- not run: needs a printer that no machine has -->" + block("sh", "false")) * 20, "at most")
        self.expect(block("", "$ caisson run -- true"), "looks like commands")

    def test_tables_are_run(self):
        self.expect("| a | `./caisson run -- true` |\n", None)
        self.expect("| a | `./caisson run -- /nowhere` |\n", "status 127")


if __name__ == "__main__":
    status, output = run("")
    if status == 77:
        print(output)
        sys.exit(77)
    unittest.main()
