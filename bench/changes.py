#!/usr/bin/env python3
"""Commit and diff of many changed files, compared with the usual programs.

  bench/changes.py --caisson build/caisson [--before OTHER] [--files 10000] [--rounds 5]

commit  `caisson session commit`, compared with `cp -a` of the same files to an equal tree and `sync -f`. Target: 2x.
diff    `caisson session diff -p`, compared with `git diff --no-index` of two equal trees. Target: 2x.

Each round measures every row once, in a different order, on new trees. Half of the files change in size. Processor time
is that of the process and its children. The script compares the results of the rows and fails if they differ.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

CHANGE = """
import os, sys
number = 0
for directory, names, files in sorted(os.walk(sys.argv[1])):
    for name in sorted(files):
        path = os.path.join(directory, name)
        number += 1
        if number % 2:
            with open(path, "a") as file:
                file.write("one more line\\n")
        else:
            text = open(path).read()
            with open(path, "w") as file:
                file.write(text.replace("alpha", "omega", 3))
"""


def measured(command, **options):
    """Returns elapsed and processor seconds of a command that must succeed."""
    begin = time.monotonic()
    child = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(child.pid, 0)
    elapsed = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    return elapsed, usage.ru_utime + usage.ru_stime, child.returncode


def must(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


class Round:
    def __init__(self, scratch, arguments):
        self.scratch, self.arguments = scratch, arguments
        self.original, self.changed = os.path.join(scratch, "original"), os.path.join(scratch, "changed")
        words = random.Random(1)
        for directory in range(100):
            os.makedirs(os.path.join(self.original, f"d{directory}"))
            for number in range(arguments.files // 100):
                with open(os.path.join(self.original, f"d{directory}", f"file{number}.txt"), "w") as file:
                    size = 0
                    while size < arguments.bytes:
                        size += file.write(f"alpha {words.getrandbits(64):x} {words.getrandbits(64):x}\n")
        must(["cp", "-a", self.original, self.changed])
        must([sys.executable, "-c", CHANGE, self.changed])
        self.results = {}

    def note(self, row, elapsed, processor):
        self.results.setdefault(row, []).append((elapsed, processor))

    def copy(self):
        target = os.path.join(self.scratch, "target")
        must(["cp", "-a", self.original, target])
        must(["sync", "-f", target])
        elapsed, processor, status = measured(
            ["sh", "-c", 'cp -a "$1/." "$2" && sync -f "$2"', "sh", self.changed, target])
        if status != 0:
            sys.exit("cp failed")
        self.note("cp -a, sync -f", elapsed, processor)
        shutil.rmtree(target)

    def session(self, name, program):
        target, home = os.path.join(self.scratch, "target"), os.path.join(self.scratch, "home")
        must(["cp", "-a", self.original, target])
        environment = dict(os.environ, CAISSON_HOME=home)
        call = lambda *words: must([program, "session", *words], env=environment, cwd=target)
        identity = call("create")
        call("exec", identity, "--", "python3", "-c", CHANGE, "/workspace")
        must(["sync", "-f", target])
        with open(os.devnull, "w") as nowhere:
            elapsed, processor, status = measured([program, "session", "diff", "-p", identity], env=environment,
                                                  stdout=nowhere, stderr=nowhere)
            if status != 0:
                sys.exit(f"{name}: diff failed")
            self.note(f"{name} diff -p", elapsed, processor)
            elapsed, processor, status = measured([program, "session", "commit", identity], env=environment,
                                                  stdout=nowhere, stderr=nowhere)
            if status != 0:
                sys.exit(f"{name}: commit failed")
            self.note(f"{name} commit", elapsed, processor)
        must(["diff", "-r", self.changed, target])
        call("destroy", identity)
        shutil.rmtree(target)
        shutil.rmtree(home)

    def git(self):
        with open(os.devnull, "w") as nowhere:
            elapsed, processor, status = measured(
                ["git", "diff", "--no-index", self.original, self.changed], stdout=nowhere,
                env=dict(os.environ, GIT_PAGER="cat"))
        if status != 1:  # the trees differ
            sys.exit("git diff failed")
        self.note("git diff --no-index", elapsed, processor)


def report(results, peers):
    print(f"{'median of ' + str(len(next(iter(results.values())))):<28}{'elapsed':>10}{'processor':>12}"
          f"{'elapsed':>10}{'processor':>12}")
    medians = {row: [statistics.median(one[i] for one in values) for i in (0, 1)] for row, values in results.items()}
    missed = False
    for row, (elapsed, processor) in sorted(medians.items()):
        line = f"{row:<28}{elapsed * 1e3:>7.0f} ms{processor * 1e3:>9.0f} ms"
        peer = next((peers[kind] for kind in peers if row.endswith(kind)), None)
        if peer:
            ratios = elapsed / medians[peer][0], processor / medians[peer][1]
            line += f"{ratios[0]:>9.2f}x{ratios[1]:>11.2f}x   of {peer}"
            if row.startswith("caisson"):
                met = max(ratios) <= 2
                missed = missed or not met
                line += ", target 2x: " + ("met" if met else "missed")
        print(line)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caisson", required=True)
    parser.add_argument("--before", help="another build to measure in alternation")
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--bytes", type=int, default=4000, help="of each file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", default="/var/tmp", help="the directory for the trees")
    arguments = parser.parse_args()
    scratch = tempfile.mkdtemp(prefix="caisson-bench-", dir=arguments.scratch)
    try:
        measure = Round(scratch, arguments)
        rows = [measure.copy, measure.git, lambda: measure.session("caisson", os.path.abspath(arguments.caisson))]
        if arguments.before:
            rows.append(lambda: measure.session("before", os.path.abspath(arguments.before)))
        for number in range(arguments.rounds):
            random.Random(number).shuffle(rows)
            for row in rows:
                row()
        missed = report(measure.results, {"commit": "cp -a, sync -f", "diff -p": "git diff --no-index"})
    finally:
        shutil.rmtree(scratch)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
