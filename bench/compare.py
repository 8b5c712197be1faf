#!/usr/bin/env python3
"""compare.py OTHER_BUILD BUILD [--only exec,create,many] [--rounds N]: runs the session benchmark of two builds.

Both build directories need caisson, bench/sessions and bench/floor (make bench, or cmake -DCAISSON_BENCH=ON). Every
round runs one build and then the other, so that other load on the machine affects both equally. The table shows the
median of all rounds for each build, and the difference. Rows that only one build has are shown without a difference.
"""
import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROW = re.compile(r"^\| (?P<what>.+?) *\| (?P<measured>[^|]+?) *\|")
NUMBER = re.compile(r"(\d+(?:\.\d+)?) ?(ms|KiB|MiB|x)?")


def run(build: Path, only: str) -> dict[str, list[tuple[float, str]]]:
    """Returns the rows of one run: name, and the numbers with their units."""
    program = [build / "bench/sessions", "--caisson", build / "caisson", "--floor", build / "bench/floor"]
    done = subprocess.run([*program, "--only", only], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"compare: {build}: {done.stderr.strip() or done.stdout.strip()}")
    rows = {}
    for line in done.stdout.splitlines():
        found = ROW.match(line)
        if not found or found["what"] == "what" or found["what"].startswith("---"):
            continue
        rows[found["what"]] = [(float(value), unit or "") for value, unit in NUMBER.findall(found["measured"])]
    return rows


def medians(rounds: list[dict], what: str) -> list[tuple[float, str]]:
    runs = [one[what] for one in rounds if what in one]
    if not runs:
        return []
    return [(statistics.median(run[i][0] for run in runs), runs[0][i][1]) for i in range(len(runs[0]))]


def text(numbers: list[tuple[float, str]]) -> str:
    return ", ".join(f"{value:.3g}{' ' if unit and unit != 'x' else ''}{unit}" for value, unit in numbers)


def difference(before: list[tuple[float, str]], after: list[tuple[float, str]]) -> str:
    if len(before) != len(after):
        return ""
    return ", ".join(f"{now - then:+.3g}{' ' if unit and unit != 'x' else ''}{unit}"
                     for (then, unit), (now, _) in zip(before, after))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", default="exec,create,many")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    before: list[dict] = []
    after: list[dict] = []
    for _ in range(options.rounds):
        before.append(run(options.other, options.only))
        after.append(run(options.build, options.only))
    names = list(before[0]) + [name for name in after[0] if name not in before[0]]
    print("| what | before | after | difference |\n|---|---|---|---|")
    for name in names:
        then, now = medians(before, name), medians(after, name)
        print(f"| {name} | {text(then)} | {text(now)} | {difference(then, now)} |")


if __name__ == "__main__":
    main()
