#!/usr/bin/env python3
"""python3 BUNDLE.pyz [--jobs N] [--filter REGEX] [--without FILE] [--results DIRECTORY] [--list]: runs the suites of a
bundle as `make test` does, and prints the same last line. Needs Linux and Python 3.

--jobs: parallel tests; the default is four for each processor.
--filter: only suites with a matching name.  --without: a file with suites to leave out, one name and reason per line.
A suite that needs a missing program is skipped, with the program as the reason.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
import zipfile

MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
# What suites need besides their own files; tests inside a suite skip themselves.
NEEDED = {"installed_package": ("cmake", "c++"), "launch_cost": ("strace",)}
NEEDED_AS_USER = ("useradd", "setpriv", "flock")
NOT_IN_BUNDLE = {"installed_package": "needs the build directory, which is not in a bundle"}


def unpack(bundle, into):
    with zipfile.ZipFile(bundle) as whole, whole.open("files.tar.xz") as packed:
        with tarfile.open(fileobj=packed, mode="r|xz") as tar:
            tar.extractall(into)


def reason_to_skip(test, without):
    name = test["name"].removesuffix(".user")
    for wanted in (test["name"], name):
        if wanted in without:
            return without[wanted]
    if name in NOT_IN_BUNDLE:
        return NOT_IN_BUNDLE[name]
    if test["name"].endswith(".user") and os.geteuid() != 0:
        return None  # not listed for an ordinary user
    needed = list(NEEDED.get(name, ())) + [test["command"][0]]
    if test["name"].endswith(".user"):
        needed += NEEDED_AS_USER
    missing = [program for program in needed if shutil.which(program) is None]
    return f"missing program: {', '.join(missing)}" if missing else ""


class Runner:
    def __init__(self, tests, jobs):
        self.waiting = sorted(tests, key=lambda test: (test["serial"], -test["cost"]))
        self.jobs = jobs
        self.free = jobs
        self.change = threading.Condition()
        self.done = []
        self.total = len(tests)

    def run_all(self):
        while self.waiting:
            test = self.waiting.pop(0)
            size = self.jobs if test["serial"] else min(test["processors"], self.jobs)
            with self.change:
                self.change.wait_for(lambda: self.free >= size)
                self.free -= size
            threading.Thread(target=self.run_one, args=(test, size)).start()
        with self.change:
            self.change.wait_for(lambda: self.free == self.jobs)
        return self.done

    def run_one(self, test, size):
        begin = time.monotonic()
        status, output = run_command(test)
        with self.change:
            self.done.append((test, status, output))
            self.free += size
            print(f"[{len(self.done)}/{self.total}] {test['name']}: {status} ({time.monotonic() - begin:.0f} s)", flush=True)
            self.change.notify_all()


def run_command(test):
    environment = dict(os.environ, **dict(entry.split("=", 1) for entry in test["environment"]))
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(test["command"], env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout=test["timeout"] * float(os.environ.get("CAISSON_TEST_SLOWNESS", "1")))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = "timeout"
        output.seek(0)
        text = output.read().decode(errors="replace")
    if code == 0:
        return "passed", text
    if code == test["skip_code"]:
        return "skipped", text
    return ("timeout" if code == "timeout" else f"failed ({code})"), text


def write_results(done, skipped, directory):
    """As `ctest --output-junit` does, for test_summary.py."""
    root = ElementTree.Element("testsuite")
    for test, status, output in done:
        word = {"passed": "run", "skipped": "notrun"}.get(status, "fail")
        case = ElementTree.SubElement(root, "testcase", name=test["name"], status=word)
        if word == "fail":
            ElementTree.SubElement(case, "failure", message=status)
        if word == "notrun":
            ElementTree.SubElement(case, "skipped", message="SKIP_RETURN_CODE=77")
        ElementTree.SubElement(case, "system-out").text = "".join(
            c for c in output[-100_000:] if c in "\n\t" or c >= " ")
    for test, reason in skipped:
        case = ElementTree.SubElement(root, "testcase", name=test["name"], status="notrun")
        ElementTree.SubElement(case, "skipped", message="SKIP_REGULAR_EXPRESSION_MATCHED")
        ElementTree.SubElement(case, "system-out").text = reason
    ElementTree.ElementTree(root).write(directory / "ctest.xml", encoding="utf-8")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=4 * (os.cpu_count() or 1))
    parser.add_argument("--filter", default="")
    parser.add_argument("--without")
    parser.add_argument("--results")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def read_list(path):
    lines = pathlib.Path(path).read_text().splitlines() if path else []
    pairs = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    return {pair[0]: pair[1] if len(pair) > 1 else "left out" for pair in pairs}


def choose(tests, wanted, without):
    """Returns the tests to run, and those that are skipped with their reasons."""
    run, skipped = [], []
    for test in tests:
        if not re.search(wanted, test["name"]):
            continue
        reason = reason_to_skip(test, without)
        if reason:
            skipped.append((test, reason))
        elif reason is not None:
            run.append(test)
    return run, skipped


def main():
    options = arguments()
    bundle = pathlib.Path(sys.argv[0]).resolve()
    # Readable by everyone: root's tests also run as an ordinary user. Not inherited by tests as TMPDIR.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="caisson-tests-"))
    directory.chmod(0o755)
    try:
        unpack(bundle, directory)
        text = (directory / "bundle.json").read_text().replace("@ROOT@", str(directory))
        content = json.loads(text)
        machine = MACHINES[content["architecture"]]
        if platform.machine() != machine:
            sys.exit(f"this bundle is for {machine}, and this machine is {platform.machine()}")
        run, skipped = choose(content["tests"], options.filter, read_list(options.without))
        if options.list:
            print("\n".join([test["name"] for test in run] + [f"{test['name']}: {why}" for test, why in skipped]))
            return 0
        results = directory / "build/test-results"
        results.mkdir()
        done = Runner(run, options.jobs).run_all()
        for test, status, output in done:
            if status.startswith(("failed", "timeout")):
                print(f"--- {test['name']}: {status}\n{output[-20_000:]}")
        write_results(done, skipped, results)
        if options.results:
            shutil.copytree(results, options.results, dirs_exist_ok=True)
        return subprocess.run([sys.executable, directory / "scripts/test_summary.py", results], check=False).returncode
    finally:
        shutil.rmtree(directory, ignore_errors=True)  # our own files: tests have their own directories


if __name__ == "__main__":
    sys.exit(main())
