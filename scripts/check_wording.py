#!/usr/bin/env python3
"""Plain wording: commit subjects, and words of the dialect that the code base is leaving behind.

  check_wording.py            fails on a bad commit subject, or when a file has more such words than it had
  check_wording.py --update   writes the present counts to scripts/wording_baseline.txt; they may only fall

Commits older than this script are not judged. The baseline lists files that are still to be reworded.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASELINE = ROOT / "scripts" / "wording_baseline.txt"
SUBJECT = re.compile(r"^[a-z0-9_/,. -]+: [a-z]")
LONGEST = 72
SUFFIXES = {".cc", ".h", ".md", ".sh", ".py", ".toml", ".txt"}
SKIPPED = {"scripts/check_wording.py", "scripts/wording_baseline.txt", "docs/glossary.md"}
WORDS = re.compile(
    r"\b(nobody|somebody|whoever|whatever it|of its own|lets? go of|goes on|stands? for itself|what was (?:said|asked)"
    r"|is no [a-z]+ that|kMost[A-Z]\w*|\w*Wish\b|\w*Patience\w*|attendant|resident)\b")


def git(*arguments):
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False).stdout


def bad_subjects():
    added = git("log", "--diff-filter=A", "--format=%H", "--", "scripts/check_wording.py").split()
    if not added:
        return []
    subjects = git("log", "--no-merges", "--format=%s", f"{added[-1]}..HEAD").splitlines()
    return [one for one in subjects if len(one) > LONGEST or ";" in one or not SUBJECT.match(one)]


def count_words():
    counts = {}
    for name in git("ls-files").splitlines():
        path = ROOT / name
        if name in SKIPPED or path.suffix not in SUFFIXES or not path.is_file():
            continue
        found = len(WORDS.findall(path.read_text(errors="replace")))
        if found:
            counts[name] = found
    return counts


def main():
    counts = count_words()
    if "--update" in sys.argv[1:]:
        BASELINE.write_text("".join(f"{name} {count}\n" for name, count in sorted(counts.items())))
        return 0
    allowed = {}
    for line in BASELINE.read_text().splitlines():
        name, count = line.rsplit(" ", 1)
        allowed[name] = int(count)
    failed = False
    for subject in bad_subjects():
        print(f"commit subject: {subject!r}: write `area: imperative summary`, at most {LONGEST} characters, no semicolon")
        failed = True
    for name, count in sorted(counts.items()):
        if count > allowed.get(name, 0):
            print(f"{name}: {count} words of the old dialect, {allowed.get(name, 0)} before; docs/glossary.md has plain ones")
            failed = True
    if not failed:
        left = sum(counts.values())
        print(f"wording: no new dialect, {left} places left to reword" if left else "wording: plain")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
