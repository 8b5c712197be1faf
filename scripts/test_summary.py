#!/usr/bin/env python3
"""test_summary.py DIRECTORY: summarises the test results of one ctest run.

ctest.xml contains the status of each ctest entry; <entry>.xml, written by GoogleTest, lists the entry's test cases.
An entry without a list of cases (it crashed, timed out, or is not a GoogleTest program) counts as one case. An entry
that failed although all its cases passed (a leak found at exit) adds one failed case.
Prints failed and skipped cases with their reasons, then `N passed, N failed, N skipped`.
Exits 1 if a case failed. CAISSON_MUST_RUN=1 counts skipped cases as failed.
"""
import os
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def first_line(text):
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")


def last_line(text):
    return next((line.strip() for line in reversed((text or "").splitlines()) if line.strip()), "")


def skip_reason(element):
    # GoogleTest 1.12 puts "file:line" on the first line and the message after it.
    lines = [line.strip() for line in (element.get("message") or element.text or "").splitlines() if line.strip()]
    if len(lines) > 1 and ":" in lines[0] and lines[0].rsplit(":", 1)[1].isdigit():
        lines = lines[1:]
    return " ".join(lines) or "no reason given"


def gtest_cases(path, entry):
    """Yields (name, 'passed' | 'failed' | 'skipped', reason) of every case in a GoogleTest file."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = f"{entry}: {case.get('classname')}.{case.get('name')}"
        failure = case.find("failure")
        skipped = case.find("skipped")
        if failure is not None:
            yield name, "failed", " ".join((failure.get("message") or "").split())[:300]
        elif case.get("status") == "notrun" or case.get("result") == "suppressed":
            yield name, "skipped", "disabled in the source"
        elif skipped is not None or case.get("result") == "skipped":
            yield name, "skipped", skip_reason(skipped) if skipped is not None else "no reason given"
        else:
            yield name, "passed", ""


def entry_cases(directory, entry):
    name = entry.get("name")
    status = entry.get("status")  # run, fail, disabled, notrun
    failure = entry.find("failure")
    failed = status == "fail" or failure is not None
    listing = directory / f"{name}.xml"
    if listing.exists() and listing.stat().st_size > 0:
        try:
            cases = list(gtest_cases(listing, name))
        except ElementTree.ParseError as error:
            return [(name, "failed", f"unreadable result file: {error}")]
        if failed and not any(outcome == "failed" for _, outcome, _ in cases):
            cases.append((name, "failed", "all cases passed, but the exit status was not 0 (see the output above)"))
        return cases
    if failed:
        how = first_line(failure.get("message") if failure is not None else "") or "failed"
        return [(name, "failed", f"{how}; last line of output: {last_line(entry.findtext('system-out')) or 'none'}")]
    if status in ("disabled", "notrun"):
        skipped = entry.find("skipped")
        message = skipped.get("message", "") if skipped is not None else ""
        if message.startswith("SKIP_"):
            return [(name, "skipped", first_line(entry.findtext("system-out")) or message)]
        return [(name, "failed", f"ctest could not run it: {message or status}")]
    return [(name, "passed", "")]


def main():
    directory = pathlib.Path(sys.argv[1])
    try:
        entries = list(ElementTree.parse(directory / "ctest.xml").getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no usable ctest result: {error}", file=sys.stderr)
        return 1
    must_run = os.environ.get("CAISSON_MUST_RUN", "") not in ("", "0")
    by_outcome = {"passed": [], "failed": [], "skipped": []}
    for entry in entries:
        for name, outcome, reason in entry_cases(directory, entry):
            if must_run and outcome == "skipped":
                outcome, reason = "failed", f"skipped, and CAISSON_MUST_RUN is set: {reason}"
            by_outcome[outcome].append((name, reason))
    print()
    for outcome in ("skipped", "failed"):
        for name, reason in by_outcome[outcome]:
            print(f"{outcome}  {name}: {reason}")
    counts = {outcome: len(cases) for outcome, cases in by_outcome.items()}
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped", flush=True)
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
