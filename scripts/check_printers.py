#!/usr/bin/env python3
"""check_printers.py [ROOT]: checks that text reaches standard output and standard error only where it is escaped.

Text from a sandbox, an image or a registry can hold escape sequences, C1 controls and bidirectional marks. print(),
printNotice() and printError() of src/cli/output.h escape everything (base/safe_text.h), as do JsonWriter, JsonValue
and writeJson() for JSON. Any other way to a terminal is an error here: write() to 1 or 2, stdio, iostreams,
writeAll() to a standard stream, and printBytes(), which is for content that is meant to be read by programs, and for
text with colours whose parts were escaped.

scripts/printer_allowlist.txt lists the exceptions, each with the reason. An unused entry is an error.
"""
import pathlib
import re
import sys

from check_paths import code_only, read_allowlist

STREAM = r"(?:STDOUT_FILENO|STDERR_FILENO|1|2)"
WAYS = {
    "write": re.compile(r"(?<![\w.>])(?:::)?(?:write|dprintf|send)\s*\(\s*" + STREAM + r"\s*,"),
    "writeAll": re.compile(r"\bwriteAll\s*\(\s*(?:[\w =]*\?\s*)?" + STREAM + r"\b"),
    "stdio": re.compile(r"\b(?:std::)?(?:f?printf|vf?printf|f?puts|f?putc|putchar|fwrite|perror|psignal)\s*\("),
    "iostream": re.compile(r"\bstd::(?:w?cout|w?cerr|w?clog)\b|\bstd::(?:print|println)\s*\("),
    "printBytes": re.compile(r"\bprintBytes\s*\("),
}


def findings(text):
    for number, line in enumerate(code_only(text).splitlines(), 1):
        for way, pattern in WAYS.items():
            for _ in pattern.finditer(line):
                yield number, way


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    allowed = read_allowlist(root / "scripts/printer_allowlist.txt")
    used = set()
    problems = 0
    for path in sorted((root / "src").rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix not in (".cc", ".h", ".c") or name.endswith("_test.cc"):
            continue
        for number, way in findings(path.read_text(errors="replace")):
            if (name, way) in allowed:
                used.add((name, way))
                continue
            problems += 1
            print(f"{name}:{number}: {way} prints without escapes: use print(), printNotice() or printError() of cli/output.h,"
                  "\n  or add the file with a reason to scripts/printer_allowlist.txt", file=sys.stderr)
    for key in sorted(set(allowed) - used):
        problems += 1
        print(f"scripts/printer_allowlist.txt: `{' '.join(key)}` is unused; remove it", file=sys.stderr)
    if not problems:
        print(f"printers: everything that is printed is escaped, {len(allowed)} exceptions with reasons")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
