#!/usr/bin/env python3
"""Shows how one launch spends its time: system calls by process, and the rest (user code, faults, waiting).

  bench/where.py [--with perf|strace] [--user NAME] [--runs N] [--top N] [--timeline] -- build/caisson run -- true

perf trace (root, or kernel.perf_event_paranoid <= -1) adds about a microsecond to a call. strace stops the program
twice for each call, so the script first measures the tracer's cost for an empty call and subtracts it. The absolute
times are not exact: use the benchmark for totals, and this script for shares and unexpected calls.
"""
import argparse
import collections
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

PERF_LINE = re.compile(r"^\s*([\d.]+) \(\s*([\d.]+) ms\): (.+?)/(\d+)\s+(?:\.\.\. \[continued\]: )?(\w+)\(")
STRACE_LINE = re.compile(r"^(\d+)\s+([\d.]+) (?:<\.\.\. )?(\w+)[( ].*<([\d.]+)>$")
WAITING = {"wait4", "waitid", "poll", "ppoll", "epoll_wait", "epoll_pwait", "futex", "vfork", "pause",
           "rt_sigtimedwait", "recvmsg", "recvfrom", "read", "select", "pselect6", "clock_nanosleep"}

Call = collections.namedtuple("Call", "process start_us duration_us name")


def as_user(user, command):
    if not user:
        return command
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--reset-env", "--"] + command


def trace(tool, user, command):
    """Runs the command once under the tracer; returns the calls by start time, with processes numbered from 1."""
    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "trace")
        if tool == "perf":
            argv = ["perf", "trace", "-o", out, "--"] + as_user(user, command)
        else:
            os.chmod(directory, 0o777)
            argv = as_user(user, ["strace", "-f", "-ttt", "-T", "-o", out, "--"] + command)
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if not os.path.exists(out) or os.path.getsize(out) == 0:
            sys.exit(f"where.py: {tool} wrote no trace: {done.stderr.strip()}")
        if done.returncode != 0:
            sys.exit(f"where.py: the command failed ({done.returncode}): {done.stderr.strip()}")
        with open(out, encoding="utf-8", errors="replace") as lines:
            return parse(tool, lines)


def parse(tool, lines):
    rows = []
    for line in lines:
        if tool == "perf":
            found = PERF_LINE.match(line)
            if found and found[3] not in ("setpriv", "perf"):
                rows.append((float(found[1]) * 1e3, float(found[2]) * 1e3, found[4], found[5]))
        else:
            found = STRACE_LINE.match(line.rstrip())
            if found:
                # A resumed call has the time of its end: compute the time of its start.
                late = float(found[4]) if " resumed>" in line else 0.0
                rows.append(((float(found[2]) - late) * 1e6, float(found[4]) * 1e6, found[1], found[3]))
    numbers, calls = {}, []
    for start, duration, pid, name in sorted(rows):
        process = numbers.setdefault(pid, len(numbers) + 1)
        calls.append(Call(process, start, duration, name))
    return calls


def tracer_cost(tool, user):
    """Returns the time that the tracer reports for a call that does nothing."""
    if tool == "perf":
        return 0.0
    calls = trace(tool, user, ["sh", "-c", "umask; umask; umask; umask; umask; umask; umask; umask"])
    cheap = [call.duration_us for call in calls if call.name in ("umask", "getppid", "getuid", "geteuid")]
    return statistics.median(cheap) if cheap else 0.0


def print_table(runs, price, top):
    totals = collections.defaultdict(lambda: [0, 0.0])
    wall = statistics.median(max(c.start_us + c.duration_us for c in run) - run[0].start_us for run in runs)
    for run in runs:
        for call in run:
            entry = totals[(call.process, call.name)]
            entry[0] += 1
            entry[1] += max(0.0, call.duration_us - price)
    print(f"{len(runs)} runs, median {wall:.0f} us from first to last call (including the tracer's cost)")
    print(f"\n{'process':>7} {'call':<20} {'calls':>7} {'us':>9} {'us/call':>9}")
    ranked = sorted(totals.items(), key=lambda item: -item[1][1])
    for (process, name), (count, total) in ranked[:top]:
        mark = "  (waiting)" if name in WAITING else ""
        print(f"{process:>7} {name:<20} {count / len(runs):>7.1f} {total / len(runs):>9.1f} {total / count:>9.2f}{mark}")
    print()
    for process in sorted({key[0] for key in totals}):
        mine = {name: value for (number, name), value in totals.items() if number == process}
        count = sum(value[0] for value in mine.values()) / len(runs)
        working = sum(value[1] for name, value in mine.items() if name not in WAITING) / len(runs)
        span = statistics.median(span_of(run, process) for run in runs)
        waiting = sum(value[1] for name, value in mine.items() if name in WAITING) / len(runs)
        rest = max(0.0, span - working - waiting - price * count)
        print(f"process {process}: {count:.0f} calls, {working:.0f} us in them, {waiting:.0f} us waiting, "
              f"{rest:.0f} us between them (user code, page faults, scheduling, tracer)")


def span_of(run, process):
    mine = [call for call in run if call.process == process]
    return max(c.start_us + c.duration_us for c in mine) - mine[0].start_us if mine else 0.0


def print_timeline(run, price):
    print(f"\n{'at us':>9} {'us':>8} {'gap':>7} {'process':>7}  call")
    last = {}
    for call in run:
        gap = call.start_us - last.get(call.process, call.start_us)
        last[call.process] = call.start_us + call.duration_us
        at = call.start_us - run[0].start_us
        print(f"{at:>9.0f} {max(0.0, call.duration_us - price):>8.1f} {max(0.0, gap):>7.1f} {call.process:>7}  {call.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", dest="tool", choices=["perf", "strace"])
    parser.add_argument("--user", help="run the command as this user (root only)")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--top", type=int, default=30)
    parser.add_argument("--timeline", action="store_true", help="also list the calls of the last run in order")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    tool = options.tool or ("perf" if os.geteuid() == 0 and shutil.which("perf") else "strace")
    if not shutil.which(tool):
        sys.exit(f"where.py: {tool} is not installed")
    price = tracer_cost(tool, options.user)
    print(f"{tool}; {price:.1f} us subtracted from each call for the tracer" if price else tool)
    runs = [trace(tool, options.user, options.command) for _ in range(options.runs)]
    runs = [run for run in runs if run]
    if not runs:
        sys.exit("where.py: no call was recorded")
    print_table(runs, price, options.top)
    if options.timeline:
        print_timeline(runs[-1], price)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
