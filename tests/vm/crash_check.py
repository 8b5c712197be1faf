#!/usr/bin/env python3
"""crash_check.py ACKNOWLEDGED DIRECTORY: compares the output of clients with the audit log after the crash.

docs/audit.md guarantees that a CRITICAL event is on disk when it is acknowledged, and any other event within a second
after that. An emulated machine gets two more seconds. Lines of that time may be missing at the end: then `audit verify`
reports only the truncated tail, and the next writer records log_tail_lost.
"""
import json
import pathlib
import re
import sys

GRACE_MS = 3000


def recorded_names(events: list) -> set:
    """Returns the commands whose start and end are recorded, and the hosts whose denial is recorded. Commands of one
    sandbox do not overlap."""
    names, running = set(), {}
    for event in events:
        data = event.get("data", {})
        if event["event"] == "sandbox_execute":
            running[event["sandbox"]] = data.get("command_preview", "")
        elif event["event"] == "sandbox_exited":
            names.add(running.pop(event["sandbox"], "").removeprefix("echo "))
        elif event["event"] == "proxy_denied":
            names.add(data.get("host", ""))
    return names


def verify_problems(left: pathlib.Path) -> list:
    """Returns the findings of `audit verify` before and after the next run, without a truncated tail that the next run
    recorded."""
    found = {name: (left / name).read_text().strip() for name in ("verify", "verify.after")}
    failed = {name for name in found if (left / (name + ".status")).read_text().strip() != "0"}
    after = [json.loads(line)["event"] for line in (left / "events.after").read_text().splitlines()]
    # A file system may keep the first part of a write.
    part = r"(.*: the file ends within a line\n)?"
    total = r"\d+ lines in \d+ files, [12] findings\nhead: .*"
    cut = re.fullmatch(part + r".*: the log ends with line \d+, but line \d+ was written: its tail was cut off\n" + total,
                       found["verify"])
    missing = re.fullmatch(part + r".*: lines \d+ to \d+ are missing before this one\n" + total, found["verify.after"])
    if cut and missing and "log_tail_lost" in after:
        return []
    return [f"audit {name}: {found[name]}" for name in sorted(failed)]


def main() -> int:
    lines = pathlib.Path(sys.argv[1]).read_text(errors="replace").splitlines()
    left = pathlib.Path(sys.argv[2])
    acknowledged = []
    for line in lines:
        words = line.split()
        if len(words) == 4 and words[0] == "ACK" and words[1].isdigit():
            acknowledged.append((int(words[1]), words[2], words[3]))
    problems = []
    if len(acknowledged) < 8:
        problems.append(f"only {len(acknowledged)} commands were acknowledged before the kill")
    problems += verify_problems(left)
    if (left / "afterwards").read_text().strip() != "afterwards":
        problems.append("the next run failed: " + (left / "afterwards").read_text().strip())
    events = [json.loads(line) for line in (left / "events").read_text().splitlines()]
    recorded = recorded_names(events)
    escapes = sum(event.get("event") == "escape_attempt" for event in events)
    acknowledged_escapes = sum(kind == "escape" for _, kind, _ in acknowledged)
    if escapes < acknowledged_escapes:
        problems.append(f"{escapes} escape attempts are recorded, {acknowledged_escapes} were acknowledged")
    last = max((time for time, _, _ in acknowledged), default=0)
    durable = [one for one in acknowledged if one[1] != "escape" and one[0] <= last - GRACE_MS]
    missing = [name for _, _, name in durable if name not in recorded]
    lost = [name for time, kind, name in acknowledged if kind != "escape" and time > last - GRACE_MS and name not in recorded]
    if missing:
        problems.append("acknowledged, but not recorded: " + ", ".join(missing))
    if not durable:
        problems.append("no command was acknowledged long enough before the kill")
    print(f"{len(acknowledged)} acknowledged, {len(events)} recorded, {escapes} of them escape attempts; "
          f"lost events of the last {GRACE_MS // 1000} s: {len(lost)}")
    for problem in problems:
        print("FAILED: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
