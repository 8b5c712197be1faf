#!/usr/bin/env python3
"""check_conformance.py [--update]: compares docs/requirements.md with the CONFORMS marks of the tests.

Every requirement must have a test that is marked with its id, or be planned for one of the areas below. Every mark must
name a requirement. docs/conformance.md is the resulting table: --update writes it; otherwise it must be up to date.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PLANNED = ("Windows", "macOS", "OCI runtime", "images")
SECTION = re.compile(r"^## (.+)$")
ROW = re.compile(r"^\| (R-[A-Z]+-\d+) \| (.+?) \|$")
STATE = re.compile(r" \(planned: ([^)]+)\)$")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
MARK = re.compile(r"\bCONFORMS\(([^)]*)\)(?:;|$)", re.M)
PYTHON = re.compile(r"^class (\w+)|^    def (\w+)", re.M)
ID = re.compile(r'"([^"]*)"')
HEAD = """# Conformance

The tests that prove each requirement of [requirements.md](requirements.md), by the marks in their source. Written by
`scripts/check_conformance.py --update`; `make check` fails when marks and requirements differ.
"""


def requirements(text):
    """Returns [(section, [(id, area or None)])] in the order of the page."""
    found = []
    for line in text.splitlines():
        if section := SECTION.match(line):
            found.append((section.group(1), []))
        elif row := ROW.match(line):
            state = STATE.search(row.group(2))
            found[-1][1].append((row.group(1), state.group(1) if state else None))
    return found


def python_tests(text):
    """Returns [(start, class.function)] of a unittest file."""
    begins, group = [], ""
    for match in PYTHON.finditer(text):
        if match.group(1):
            group = match.group(1)
        else:
            begins.append((match.start(), f"{group}.{match.group(2)}"))
    return begins


def marks(sources):
    """Returns {id: [test]} and the problems of an iterable of (path, text)."""
    tests, problems = {}, []
    for path, text in sources:
        begins = [(match.start(), f"{match.group(1)}.{match.group(2)}") for match in TEST.finditer(text)]
        if str(path).endswith(".py"):
            begins = python_tests(text)
        if str(path).endswith(".sh"):  # a script is one test, with its marks in comments
            begins = [(-1, str(path))]
        for mark in MARK.finditer(text):
            inside = [name for start, name in begins if start < mark.start()]
            ids = ID.findall(mark.group(1))
            if not inside or not ids:
                problems.append(f"{path}: a CONFORMS outside a test, or without an id")
                continue
            for one in ids:
                tests.setdefault(one, []).append(inside[-1])
    return tests, problems


def compare(wanted, tests):
    listed = [row for _, rows in wanted for row in rows]
    ids = [one for one, _ in listed]
    for one in sorted({one for one in ids if ids.count(one) > 1}):
        yield f"{one} is listed twice"
    for one, area in listed:
        if area is not None and area not in PLANNED:
            yield f'{one} is planned for "{area}": expected one of {", ".join(PLANNED)}'
        if area is not None and one in tests:
            yield f"{one} is planned, but {tests[one][0]} is marked with it"
        if area is None and one not in tests:
            yield f"{one} has no test"
    for one in sorted(set(tests) - set(ids)):
        yield f"{tests[one][0]} is marked with {one}, which is not in docs/requirements.md"


def table(wanted, tests):
    text = HEAD
    for section, rows in wanted:
        if not rows:
            continue
        text += f"\n## {section}\n\n| id | shown by |\n|---|---|\n"
        for one, area in rows:
            shown = f"planned: {area}" if area else ", ".join(f"`{test}`" for test in sorted(set(tests.get(one, []))))
            text += f"| {one} | {shown} |\n"
    return text


def sources(root):
    for folder in ("src", "tests"):
        for path in sorted((root / folder).rglob("*.cc")):
            yield path.relative_to(root), path.read_text(errors="replace")
    scripts = [*sorted((root / "tests/image").rglob("*_suite.py")), *sorted((root / "tests/api").glob("*_test.py")),
               *sorted((root / "tests/agents").glob("*_test.py")), *sorted((root / "tests/mcp").glob("*_test.py"))]
    for path in [*sorted((root / "tests").rglob("*.sh")), *scripts]:
        yield path.relative_to(root), path.read_text(errors="replace")


def main(arguments):
    wanted = requirements((ROOT / "docs/requirements.md").read_text())
    tests, problems = marks(sources(ROOT))
    problems += compare(wanted, tests)
    if not any(rows for _, rows in wanted):
        problems.append("docs/requirements.md has no requirement")
    page = ROOT / "docs/conformance.md"
    expected = table(wanted, tests)
    if "--update" in arguments and not problems:
        page.write_text(expected)
    elif page.read_text() != expected:
        problems.append("docs/conformance.md is out of date: run scripts/check_conformance.py --update")
    for problem in problems:
        print(f"conformance: {problem}")
    if not problems and "--print" in arguments:
        print(expected, end="")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
