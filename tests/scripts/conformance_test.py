#!/usr/bin/env python3
"""conformance_test.py [ROOT]: every test that docs/conformance.md names exists, and every row says something."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.M)
NAME = re.compile(r"`(\w+\.\w+)`")


def known_tests(root):
    return {
        f"{suite}.{case}"
        for folder in ("src", "tests")
        for path in (root / folder).rglob("*.cc")
        for suite, case in TEST.findall(path.read_text(errors="replace"))
    }


def problems(text, known):
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| item ")]
    if len(rows) < 50:
        yield f"only {len(rows)} rows: the table was not read"
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        proof = cells[1] if len(cells) == 2 else ""
        names = NAME.findall(proof)
        reasoned = proof.startswith(("planned", "does not apply", "the rows"))
        if not names and not reasoned:
            yield f"neither a test nor a reason: {row}"
        for name in names:
            if name not in known:
                yield f"there is no test {name}: {row}"


def main():
    known = known_tests(ROOT)
    # The check itself must be able to fail.
    assert list(problems("| item | `No.Such` |", known)), "a missing test goes unnoticed"
    found = list(problems((ROOT / "docs/conformance.md").read_text(), known))
    print("\n".join(found) if found else "conformance: every named test exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
