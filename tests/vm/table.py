"""table.py RESULTS: prints the results of each machine's suites from RESULTS/ROW/*.xml; fails if a test or a machine
failed.

The directory of a row is named kernel,architecture,user,layout.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree as tree


def read(directory):
    counts = collections.Counter()
    failed, reasons = [], collections.Counter()
    for report in sorted(directory.glob("*.xml")):
        for case in tree.parse(report).getroot().iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skipped = case.find("skipped")
            if case.find("failure") is not None:
                counts["failed"] += 1
                failed.append(name)
            elif skipped is not None:
                counts["skipped"] += 1
                reasons[(skipped.get("message") or "").strip().split("\n")[-1]] += 1
            else:
                counts["passed"] += 1
    return counts, failed, reasons


def main():
    rows = sorted(path for path in pathlib.Path(sys.argv[1]).iterdir() if path.is_dir() and not path.name.startswith("."))
    print(f"{'kernel':<8}{'arch':<8}{'user':<8}{'cgroup layout':<15}{'passed':>7}{'failed':>7}{'skipped':>8}  remarks")
    bad = False
    notes = []
    for row in rows:
        kernel, arch, user, layout = row.name.split(",")
        counts, failed, reasons = read(row)
        remark = ""
        if not counts:
            remark = "no report: the machine did not boot, or timed out"
            bad = True
        bad = bad or counts["failed"] > 0
        print(
            f"{kernel:<8}{arch:<8}{user:<8}{layout:<15}{counts['passed']:>7}{counts['failed']:>7}{counts['skipped']:>8}  {remark}"
        )
        notes += [f"{row.name}: failed: {name}" for name in failed]
        notes += [f"{row.name}: skipped {count}: {reason}" for reason, count in reasons.items()]
    print("\n".join(notes))
    return 1 if bad or not rows else 0


sys.exit(main())
