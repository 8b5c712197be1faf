#!/usr/bin/env python3
"""conformance_test.py [ROOT]: every test that docs/conformance.md names exists, every row says something, and every
numbered item of the source documents has a row."""
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


def required_items():
    """What the source documents number, each with the section whose first column must have it."""
    yield from (("000", f"INV-S{number}") for number in range(1, 10))
    yield from (("001", f"MUST allow {number}") for number in range(1, 9))
    yield from (("001", f"MUST block {number}") for number in range(1, 8))
    yield from (("002", f"T-{number}") for number in range(101, 109))
    last = {0: 13, 1: 8, 2: 12, 3: 12, 4: 20, 5: 12}  # of each phase
    yield from (("003", f"{phase}.{item}") for phase, most in last.items() for item in range(1, most + 1))


def missing_items(text):
    for section, wanted in required_items():
        body = text.partition(f"\n## {section}:")[2].partition("\n## ")[0]
        items = [row.split("|")[1] for row in body.splitlines() if row.startswith("| ")]
        if not any(re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w.])", item) for item in items):
            yield f"no row for {wanted} of {section}"


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
    text = (ROOT / "docs/conformance.md").read_text()
    assert list(missing_items(text.replace("| T-107 ", "| T-1070 "))), "a missing row goes unnoticed"
    found = [*problems(text, known), *missing_items(text)]
    print("\n".join(found) if found else "conformance: every item has its row, every named test exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
