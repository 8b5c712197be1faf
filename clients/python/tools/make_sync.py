"""Generates src/caisson_client/_sync from _async: the same code without `async` and `await`.

    python3 tools/make_sync.py [--check]      --check: writes nothing; exits 1 if a file is out of date

`stream.py` is not generated.
"""
from __future__ import annotations

import pathlib
import re
import sys

PACKAGE = pathlib.Path(__file__).resolve().parent.parent / "src" / "caisson_client"
BY_HAND = {"stream.py"}
RULES = [
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsync(?=[A-Z])", ""),
]


def convert(text: str, name: str) -> str:
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return f"# Generated from _async/{name} by tools/make_sync.py. Edit that file.\n{text}"


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    different: list[str] = []
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        if source.name in BY_HAND:
            continue
        target = PACKAGE / "_sync" / source.name
        text = convert(source.read_text(), source.name)
        if target.exists() and target.read_text() == text:
            continue
        different.append(source.name)
        if not check:
            target.write_text(text)
    if check and different:
        print(f"out of date: {', '.join(different)}; run tools/make_sync.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
