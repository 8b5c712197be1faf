#!/usr/bin/env python3
"""check_scenarios.py OFFERED VERSION=OUTPUT...: checks that every server scenario of the official suite passed, by name.

OFFERED is the output of `conformance list --server`, OUTPUT that of a run with `--requirements VERSION`. scenarios.txt
lists each scenario with its versions and must match the list of the suite, so that new, missing or changed scenarios are
noticed. Each scenario must pass, with at least one check, in the run of each of its versions (a scenario of an extension
in the newest), unless scenarios.txt excludes it with a reason.
"""
import pathlib
import re
import sys

LISTED = re.compile(r"^  - (\S+) \[(.*)\]$", re.M)
EXPECTED = re.compile(r"^(\S+) \[(.*?)\](?: (excluded|no checks): (.+))?$")
RAN = re.compile(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed", re.M)


def expectations(text):
    """Returns {name: (versions, "" or "excluded" or "no checks")}, and problems."""
    found, problems = {}, []
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = EXPECTED.match(line)
        if not match or match.group(1) in found:
            problems.append(f"scenarios.txt: invalid or duplicate line: {line}")
            continue
        found[match.group(1)] = (match.group(2), match.group(3) or "")
    return found, problems


def compare(expected, offered):
    for name in sorted(set(offered) - set(expected)):
        yield f"{name} [{offered[name]}] is new in the suite: add it to scenarios.txt"
    for name in sorted(set(expected) - set(offered)):
        yield f"{name} is no longer in the suite: remove it from scenarios.txt"
    for name in sorted(set(expected) & set(offered)):
        if expected[name][0] != offered[name]:
            yield f"{name} has other versions in the suite: {offered[name]}"


def check_runs(expected, runs):
    newest = max(runs)
    for name, (versions, note) in expected.items():
        for version, ran in runs.items():
            wanted = version in versions.split(",") or (versions == "extension" and version == newest)
            if note == "excluded" or not wanted:
                if name in ran and ran[name][2] > 0:
                    yield f"{name} failed in the run of {version}"
                continue
            mark, passed, failed = ran.get(name, ("", 0, 0))
            if not mark:
                yield f"{name} did not run for {version}"
            elif mark != "✓" or failed > 0:
                yield f"{name} failed for {version}"
            elif passed == 0 and note != "no checks":
                yield f"{name} has no checks for {version}"
            elif passed > 0 and note == "no checks":
                yield f"{name} has checks now: remove the note from scenarios.txt"
    for version, ran in runs.items():
        for name in sorted(set(ran) - set(expected)):
            yield f"{name} ran for {version} and is not in scenarios.txt"


def main(offered_file, *outputs):
    expected, problems = expectations((pathlib.Path(__file__).parent / "scenarios.txt").read_text())
    offered = dict(LISTED.findall(pathlib.Path(offered_file).read_text()))
    runs = {}
    for output in outputs:
        version, _, file = output.partition("=")
        text = pathlib.Path(file).read_text().partition("=== SUMMARY ===")[2]
        runs[version] = {name: (mark, int(passed), int(failed)) for mark, name, passed, failed in RAN.findall(text)}
    problems += [*compare(expected, offered), *check_runs(expected, runs)]
    for problem in problems:
        print(f"conformance: {problem}")
    if problems:
        return 1
    excluded = [name for name, (_, note) in expected.items() if note]
    checks = ", ".join(f"{sum(one[1] for one in ran.values())} checks for {version}" for version, ran in runs.items())
    print(f"conformance: {len(expected) - len(excluded)} of {len(offered)} server scenarios passed ({checks}); "
          f"excluded: {', '.join(excluded)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
