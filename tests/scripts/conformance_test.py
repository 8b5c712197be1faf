#!/usr/bin/env python3
"""Requirements and marked tests match, and scripts/check_conformance.py finds every kind of mismatch."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import check_conformance as check  # noqa: E402

PAGE = "## A\n\n| id | requirement |\n|---|---|\n| R-A-1 | One. |\n| R-A-2 | Two. (planned: images) |\n"
SOURCE = 'TEST_F(Suite, Case) {\n  CONFORMS("R-A-1");\n}\n'


def problems(page, source):
    tests, wrong = check.marks([("x.cc", source)])
    return [*wrong, *check.compare(check.requirements(page), tests)]


def main():
    assert problems(PAGE, SOURCE) == [], problems(PAGE, SOURCE)
    assert "| R-A-1 | `Suite.Case` |" in check.table(check.requirements(PAGE), check.marks([("x.cc", SOURCE)])[0])
    script, _ = check.marks([("tests/vm/x.sh", '# CONFORMS("R-A-1");\n')])
    assert script == {"R-A-1": ["tests/vm/x.sh"]}, script
    for page, source in (
        (PAGE, "TEST_F(Suite, Case) {\n}\n"),  # a requirement without a test
        (PAGE, SOURCE.replace('"R-A-1"', '"R-A-1", "R-A-9"')),  # a mark without a requirement
        (PAGE, SOURCE.replace("R-A-1", "R-A-2")),  # a planned one with a test
        (PAGE.replace("images", "later"), SOURCE),  # planned for an unknown area
        (PAGE + "| R-A-1 | Again. |\n", SOURCE),
        (PAGE, SOURCE + "\n" + SOURCE.replace('"R-A-1"', "")),
        (PAGE, 'CONFORMS("R-A-1");\n'),  # outside a test
    ):
        assert problems(page, source), (page, source)
    return check.main([])


if __name__ == "__main__":
    sys.exit(main())
