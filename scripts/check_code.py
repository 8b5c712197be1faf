#!/usr/bin/env python3
"""check_code.py [ROOT]: reports functions of src/ that are too long, and comparisons with the text of an error message.

Relies on clang-format's layout: a function at namespace or class level ends with a `}` at the indentation of its
first line.
"""
import pathlib
import re
import sys

MAX_LINES = 60
OPENING = re.compile(r"\)[^;]* \{$")
LAMBDA = re.compile(r"\[[^\]]*\]( mutable)?( \{|\()")
NO_FUNCTION = re.compile(r" *(namespace|struct|class|enum|union|extern|if|for|while|switch|else|do|case|default|return)\b")
MESSAGE = re.compile(
    r"(\berror\w*(\(\))?(\.|->)(reason|hint|call)\s*(==|!=|\.(find|starts_with|ends_with|contains)\()"
    r"|\bmessage\(\)\.(find|starts_with|ends_with|contains)\()")


def first_line(lines, number):
    """Returns the number of the line where the statement of this line begins."""
    while number > 0 and lines[number - 1] and not re.search(r"[;{}:>]$|^ *//|^#", lines[number - 1]):
        number -= 1
    return number


def long_functions(lines):
    """Yields (line number, length) of each function that is too long."""
    for number, line in enumerate(lines):
        if not OPENING.search(line) or LAMBDA.search(line):
            continue
        begin = first_line(lines, number)
        indent = re.match(" *", lines[begin])[0]
        if len(indent) > 2 or NO_FUNCTION.match(lines[begin]):
            continue
        for length, other in enumerate(lines[begin:], 1):
            if other in (indent + "}", indent + "};"):
                if length > MAX_LINES:
                    yield begin + 1, length
                break


def check(root):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".cc", ".h"} or path.stem.endswith("_test"):
            continue
        name = path.relative_to(root).as_posix()
        lines = path.read_text(errors="replace").splitlines()
        for number, length in long_functions(lines):
            yield f"{name}:{number}: a function of {length} lines; the maximum is {MAX_LINES}"
        for number, line in enumerate(lines, 1):
            if MESSAGE.search(line.split("//")[0]):
                yield f"{name}:{number}: compares the text of an error; use an ErrorCode"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    problems = list(check(root))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
