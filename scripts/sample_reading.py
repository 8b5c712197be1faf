#!/usr/bin/env python3
"""sample_reading.py SEED: prints 30 random declarations and 20 random comments for a readability test.

A reader who does not know the code explains each one without the implementation (docs/contributing.md).
"""
import pathlib
import random
import re
import sys

DECLARATION = re.compile(
    r"^(?:\[\[nodiscard\]\] )?(?:static |virtual |explicit |constexpr |inline )*[\w:<>,&*\s\[\]]+?\b(\w+)\([^;{]*\)"
    r"(?: const)?(?: override)?(?: noexcept)?(?: = 0)?;", re.M)


def declarations(path):
    """Yields the functions and methods of a header, each with the comment above it and its class."""
    lines = path.read_text().split("\n")
    scope, depth = [], 0
    index = 0
    while index < len(lines):
        line = lines[index]
        opened = re.match(r"\s*(?:class|struct) (\w+)[^;]*\{\s*$", line)
        if opened:
            scope.append((opened.group(1), depth))
        depth += line.count("{") - line.count("}")
        while scope and depth <= scope[-1][1]:
            scope.pop()
        text = line.strip()
        if re.match(r"[\w\[:]", text) and "(" in text and not text.startswith(("return", "if", "for", "#", "using", "friend")):
            end = index
            while end + 1 < len(lines) and not lines[end].rstrip().endswith((";", "{", "}")):
                end += 1
            whole = " ".join(part.strip() for part in lines[index:end + 1])
            if DECLARATION.match(whole) and "~" not in whole and "operator" not in whole and "= delete" not in whole:
                above = index
                while above > 0 and lines[above - 1].strip().startswith("//"):
                    above -= 1
                yield index + 1, "::".join(name for name, _ in scope), "\n".join(
                    part.strip() for part in lines[above:end + 1])
                index = end
        index += 1


def comments(path):
    """Yields the comments inside and above code, each with the next two lines of code."""
    lines = path.read_text().split("\n")
    index = 0
    while index < len(lines):
        if lines[index].strip().startswith("//") and "clang-format" not in lines[index]:
            start = index
            while index < len(lines) and lines[index].strip().startswith("//"):
                index += 1
            if start > 0:  # not the comment at the top of the file
                yield start + 1, "\n".join(lines[start:index + 2])
        index += 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    chance = random.Random(sys.argv[1])
    root = pathlib.Path(__file__).resolve().parent.parent
    headers = sorted([*root.glob("src/**/*.h"), *root.glob("include/**/*.h")])
    sources = sorted(path for path in root.glob("src/**/*.cc") if not path.name.endswith("_test.cc"))
    declared = [(path, *one) for path in headers for one in declarations(path)]
    commented = [(path, *one) for path in sources for one in comments(path)]
    for number, (path, line, scope, text) in enumerate(chance.sample(declared, 30), 1):
        print(f"## {number}. {path.relative_to(root)}:{line}{' in ' + scope if scope else ''}\n{text}\n")
    for number, (path, line, text) in enumerate(chance.sample(commented, 20), 31):
        print(f"## {number}. {path.relative_to(root)}:{line}\n{text}\n")


if __name__ == "__main__":
    main()
