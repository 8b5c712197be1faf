#!/usr/bin/env python3
"""Checks commit subjects, and that files contain none of a list of unclear words.

docs/glossary.md has the words to use instead. Exceptions are listed in wording_allowlist.txt. Commits older than this
script are not checked.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWLIST = ROOT / "scripts" / "wording_allowlist.txt"
SUBJECT = re.compile(r"^[a-z0-9_/,. -]+: [a-z]")
LONGEST = 72
SUFFIXES = {".cc", ".h", ".md", ".sh", ".py", ".toml", ".txt"}
SKIPPED = {"scripts/check_wording.py", "scripts/wording_allowlist.txt", "docs/glossary.md"}
WORDS = re.compile(
    r"\b(nobody|somebody|whoever|whatever it|of its own|lets? go of|goes on|stands? for itself|what was (?:said|asked)"
    r"|kMost[A-Z]\w*|\w*Wish\b|\w*Patience\w*|attendant|resident|SPEC"
    r"|(?<![Tt]here )(?:is|are|was|were) no (?!longer\b|more\b|less\b|one\b)[a-z]+)\b")


def git(*arguments):
    return subprocess.run(["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), *arguments], capture_output=True,
                          text=True, check=False).stdout


def bad_subjects():
    added = git("log", "--diff-filter=A", "--format=%H", "--", "scripts/check_wording.py").split()
    if not added:
        return
    for subject in git("log", "--no-merges", "--format=%s", f"{added[-1]}..HEAD").splitlines():
        if len(subject) > LONGEST or ";" in subject or not SUBJECT.match(subject):
            yield f"commit subject {subject!r}: write `area: imperative summary`, at most {LONGEST} characters, no semicolon"


def unclear_words(allowed):
    for name in git("ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        path = ROOT / name
        if name in SKIPPED or path.suffix not in SUFFIXES or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for found in WORDS.findall(line):
                if (name, found) not in allowed:
                    yield f"{name}:{number}: {found!r} is unclear; docs/glossary.md has the words to use"


def main():
    lines = (line for line in ALLOWLIST.read_text().splitlines() if not line.startswith("#"))
    allowed = {tuple(line.split(" ", 1)) for line in lines}
    problems = [*bad_subjects(), *unclear_words(allowed)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print("wording: plain")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
