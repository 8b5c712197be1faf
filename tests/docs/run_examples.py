#!/usr/bin/env python3
"""Runs every example of README.md and docs/*.md.

  ```sh        the blocks of one page run in order in one bash, in an empty directory, until one fails
  ```console   `$ command` lines are run too; the lines below each are its output, where `...` matches any text and
               a line `...` matches any lines; a page's console and sh blocks share the directory and the shell
  ```toml      must pass `caisson policy check`
  ```json      must be JSON, one value or one per line

Comments in the page's source, on separate lines, control the test:

  <!-- not run: REASON -->        before a block: it is not run
  <!-- no block is run: REASON -->   anywhere: no block of this page is run
  <!-- setup: COMMANDS -->        before a block: commands to run first (to create files that the example needs)
  <!-- owner configuration -->    before a toml block: it is a config.toml, not a policy

A block without a language must not look like commands. At most MAX_MARKS blocks may be excluded.

  run_examples.py [--gtest_output=xml:FILE] [PAGE...]     CAISSON_BIN: the program; CAISSON_SOURCE_DIR: the source
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

MAX_MARKS = 10      # with more excluded blocks the test would prove too little
MIN_REASON = 15     # minimum length of a reason
TIMEOUT = 240       # seconds for all pages
LEAST_EXAMPLES = 30
RUN_LANGUAGES = ("sh", "console")


class Block:
    def __init__(self, page, line, language, text, setup, not_run, owner):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.setup, self.not_run, self.owner = setup, not_run, owner

    def __str__(self):
        return f"{self.page}:{self.line}"


def blocks_of(page, text):
    """Returns the fenced blocks of a page with the comments before each."""
    found, setup, not_run, owner, fence, comment = [], "", None, False, None, None
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if fence is not None:
            if stripped == "```":
                found.append(Block(page, fence[0], fence[1], "\n".join(fence[2]) + "\n", setup, not_run, owner))
                fence, setup, not_run, owner = None, "", None, False
            else:
                fence[2].append(line[fence[3]:])
            continue
        if comment is not None:
            comment += "\n" + line
        elif stripped.startswith("<!--"):
            comment = line
        if comment is not None:
            if "-->" in comment:
                content = comment.strip()[4:].rsplit("-->", 1)[0].strip()
                if content.startswith("setup:"):
                    setup += content[6:].strip() + "\n"
                elif content.startswith("not run:"):
                    not_run = content[8:].strip()
                elif content == "owner configuration":
                    owner = True
                comment = None
            continue
        if stripped.startswith("```"):
            fence = (number, stripped[3:].strip(), [], len(line) - len(line.lstrip()))
        elif stripped and (setup or not_run or owner):
            raise SystemExit(f"{page}:{number}: a comment for a block must be directly before it")
    return found


def table_commands(text):
    """Returns the commands that a table shows as code, as in the README: `./caisson run -- id`."""
    commands = []
    for line in text.split("\n"):
        if line.startswith("|"):
            commands += [span.replace("\\|", "|") for span in re.findall(r"`((?:[A-Z]+=\S+ )?\./caisson [^`]*)`", line)]
    return commands


def looks_like_commands(text):
    return any(re.match(r"(\$ |(\./)?caisson |make |sudo |git |\S+/\S+\.(py|sh) )", line) and ": " not in line[:14]
               for line in text.split("\n"))


def console_commands(text):
    """Returns pairs of a command and its expected output."""
    pairs = []
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            pairs.append([line[2:], []])
        elif line.startswith("> ") and pairs and not pairs[-1][1]:
            pairs[-1][0] += "\n" + line[2:]
        elif pairs:
            pairs[-1][1].append(line)
    return pairs


def matches(expected, output):
    """Returns whether `output` matches `expected`, in which `...` matches anything."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return re.fullmatch(pattern, output) is not None


class Page:
    """One bash process that runs all blocks of a page, so that variables and the directory are kept."""

    def __init__(self, name, caisson, directory):
        self.name, self.directory = name, directory
        work = directory / "work"
        programs = directory / "programs"
        for path in (work, programs, directory / "home"):
            path.mkdir()
        for place in (programs, work):  # README says ./caisson
            wrapper = place / "caisson"
            wrapper.write_text(f'#!/bin/sh\nexec "{caisson}" "$@"\n')
            wrapper.chmod(0o755)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CAISSON_", "GIT_"))}
        environment.update(CAISSON_HOME=str(directory / "state"), HOME=str(directory / "home"), LC_ALL="C.UTF-8",
                           PATH=f"{programs}:{os.environ['PATH']}", NO_COLOR="1")
        environment.pop("XDG_CONFIG_HOME", None)
        environment.pop("XDG_DATA_HOME", None)
        self.environment = environment
        self.shell = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=work, env=environment, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      start_new_session=True, errors="replace")

    def run(self, commands, strict):
        """Runs commands in the page's shell; returns (status, output)."""
        end = "@@ends-here-" + os.urandom(8).hex()
        script = self.directory / "script"
        script.write_text(commands)
        # In a file: a program that reads standard input must not read the next commands.
        if strict:  # the first failure ends the shell
            text = (f"trap '__status=$?; echo; echo {end} $__status' EXIT; set -eo pipefail; . {script} </dev/null; "
                    f"set +eo pipefail; trap - EXIT; echo; echo {end} 0\n")
        else:
            text = f". {script} </dev/null; __status=$?; echo; echo {end} $__status\n"
        self.shell.stdin.write(text)
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            if line.startswith(end):
                output = "".join(lines)
                return int(line.split()[1]), output[:-1] if output.endswith("\n") else output
            lines.append(line)
        return 125, "".join(lines)

    def close(self):
        subprocess.run([str(self.directory / "programs" / "caisson"), "clean", "--all"], env=self.environment,
                       capture_output=True, timeout=60)
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)  # the shell's session, which this test created
        except ProcessLookupError:
            pass
        self.shell.wait()


def check_toml(block, page):
    file = page.directory / "example.toml"
    if block.owner:
        file = page.directory / "home" / ".config" / "caisson" / "config.toml"
        file.parent.mkdir(parents=True)
    file.write_text(block.text)
    file.chmod(0o600)
    arguments = ["policy", "explain"] if block.owner else ["policy", "check", str(file)]
    done = subprocess.run([str(page.directory / "programs" / "caisson"), *arguments], env=page.environment,
                          capture_output=True, text=True)
    if block.owner:
        file.unlink()
        file.parent.rmdir()
    return "" if done.returncode == 0 else done.stdout + done.stderr


def check_json(block):
    try:
        json.loads(block.text)
    except ValueError:
        try:
            for line in block.text.split("\n"):
                json.loads(line or "null")
        except ValueError as error:
            return str(error)
    return ""


def run_block(block, page):
    """Returns the reason why a block fails, or ""."""
    if block.setup:
        status, output = page.run(block.setup, strict=True)
        if status != 0:
            return f"its setup fails:\n{output}"
    if block.language == "sh":
        status, output = page.run(block.text, strict=True)
        return "" if status == 0 else f"status {status}:\n{output}"
    for command, expected in console_commands(block.text):
        _, output = page.run(command + "\n", strict=False)
        if not matches(expected, output):
            return f"$ {command}\nexpected:\n" + "\n".join(expected) + f"\ngot:\n{output}"
    return ""


def run_page(path, caisson, root):
    """Runs the blocks of one page; returns (number that ran, marks, failures)."""
    name = str(path.relative_to(root))
    text = path.read_text()
    blocks = blocks_of(name, text)
    silent = re.search(r"<!-- no block is run: (.*?) -->", text, re.S)
    marks = [(name, silent.group(1).strip())] if silent else []
    failures, ran = [], 0
    directory = Path(tempfile.mkdtemp(prefix="caisson-docs-"))
    directory.chmod(0o755)  # for programs that root starts inside a sandbox, which have another user id
    page = Page(name, caisson, directory)
    try:
        for block in blocks:
            if block.not_run is not None and not silent:
                marks.append((str(block), block.not_run))
            if block.language == "" and looks_like_commands(block.text) and not silent:
                failures.append(f"{block}: looks like commands: give it the language sh or console")
            if silent or block.not_run is not None:
                continue
            if block.language == "toml":
                problem = check_toml(block, page)
            elif block.language == "json":
                problem = check_json(block)
            elif block.language in RUN_LANGUAGES:
                problem = run_block(block, page)
            else:
                continue
            ran += 1
            if problem:
                failures.append(f"{block}: {problem}")
                if block.language in RUN_LANGUAGES:
                    break  # later blocks depend on the failed one
        else:
            if not silent:
                for command in table_commands(text):
                    status, output = page.run(command + "\n", strict=False)
                    ran += 1
                    if status in (125, 126, 127):
                        failures.append(f"{name}: `{command}`: status {status}:\n{output}")
    finally:
        page.close()
        shutil.rmtree(directory, ignore_errors=True)
    return ran, marks, failures


def write_listing(path, failures_of):
    """Writes a report in GoogleTest's format: one case per page."""
    suite = ElementTree.Element("testsuite", name="Documentation")
    for page, failures in failures_of.items():
        case = ElementTree.SubElement(suite, "testcase", name=page, classname="Documentation", status="run")
        if failures:
            ElementTree.SubElement(case, "failure", message="\n".join(failures)[:2000])
    tree = ElementTree.Element("testsuites")
    tree.append(suite)
    ElementTree.ElementTree(tree).write(path)


def late(*_):
    raise TimeoutError(f"the examples took more than {TIMEOUT} s")


def main():
    caisson = Path(os.environ["CAISSON_BIN"]).resolve()
    root = Path(os.environ.get("CAISSON_SOURCE_DIR") or Path(__file__).parents[2]).resolve()
    listing = next((word.split(":", 1)[1] for word in sys.argv[1:] if word.startswith("--gtest_output=xml:")), None)
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    pages = [root / page for page in named] or [root / "README.md", *sorted((root / "docs").glob("*.md"))]
    probe = subprocess.run([str(caisson), "run", "-q", "--workspace", ".:none", "--", "true"], capture_output=True,
                           text=True)
    if probe.returncode != 0:
        print(f"no sandbox can be started: {probe.stderr.strip()}")
        return 77
    signal.signal(signal.SIGALRM, late)
    signal.alarm(TIMEOUT)
    total, marks, failures_of = 0, [], {}
    for path in pages:
        name = str(path.relative_to(root))
        ran, own_marks, failures_of[name] = run_page(path, caisson, root)
        total += ran
        marks += own_marks
        print(f"{name}: {ran} examples, {len(own_marks)} not run, {len(failures_of[name])} failed", flush=True)
    general = failures_of.setdefault("marks", [])
    for place, reason in marks:
        if len(reason) < MIN_REASON:
            general.append(f"{place}: the reason for not running it says too little: {reason!r}")
    if len(marks) > MAX_MARKS:
        general.append(f"{len(marks)} blocks are not run, at most {MAX_MARKS} may be")
    if not named and total < LEAST_EXAMPLES:
        general.append(f"only {total} examples were found")
    if listing:
        write_listing(listing, failures_of)
    failures = [failure for own in failures_of.values() for failure in own]
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{total} examples run, {len(marks)} not run, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
