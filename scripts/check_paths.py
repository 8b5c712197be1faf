#!/usr/bin/env python3
"""check_paths.py [ROOT]: checks that no file outside src/sys uses string paths for file system calls.

A path that a payload can write to must be resolved beneath an open directory (sys::RootDir: openat2, no magic
links, no symlink out of the root). The same operations with string paths caused known escapes:
  open, stat, access ....... link followed out of the root: judge0 CVE-2024-28185, -28189
  mkdir, rename, chmod ..... link swapped between check and use: runc CVE-2024-45310
  mount, umount ............ mount target replaced by a link: runc CVE-2021-30465, -2025-31133
  unlink, rmdir, remove_all  removal through a planted link (`x -> /proc/self/root`)
  chown .................... ownership of a host file changed: judge0 CVE-2024-28189

In STORED_FOLDERS, which act for a sandbox with paths that were stored or observed earlier, sys::RootDir::open() with a
path (`openRoot` in the allowlist) is also an error: a sandbox may have put something else there since. They use the descriptor that was opened when the
path was given (RootDir::share), or sys::openKnown(), which compares the directory's identity.

Literal names of kernel files are allowed (open("/dev/null"), open("/proc/self/status")).
scripts/path_allowlist.txt lists the exceptions, each with the reason. An unused entry is an error.
"""
import pathlib
import re
import sys

CALLS = {
    "open": "link followed out of the root (CVE-2024-28185)",
    "creat": "link followed out of the root (CVE-2024-28185)",
    "fopen": "link followed out of the root (CVE-2024-28185)",
    "freopen": "link followed out of the root (CVE-2024-28185)",
    "opendir": "link followed out of the root (CVE-2024-28185)",
    "truncate": "link followed out of the root (CVE-2024-28185)",
    "mkdir": "component swapped for a link (CVE-2024-45310)",
    "mknod": "component swapped for a link (CVE-2024-45310)",
    "mkfifo": "component swapped for a link (CVE-2024-45310)",
    "symlink": "component swapped for a link (CVE-2024-45310)",
    "link": "component swapped for a link (CVE-2024-45310)",
    "rename": "component swapped for a link (CVE-2024-45310)",
    "chmod": "component swapped for a link (CVE-2024-45310)",
    "chown": "ownership of a host file changed (CVE-2024-28189)",
    "lchown": "ownership of a host file changed (CVE-2024-28189)",
    "mount": "mount target replaced by a link (CVE-2021-30465, CVE-2025-31133)",
    "umount": "mount target replaced by a link (CVE-2021-30465)",
    "umount2": "mount target replaced by a link (CVE-2021-30465)",
    "chroot": "a root that is a path, not a descriptor (CVE-2019-5736 class)",
    "unlink": "removal through a planted link",
    "rmdir": "removal through a planted link",
    "remove": "removal through a planted link",
    "nftw": "removal through a planted link",
}
CALL = re.compile(r"(?<![\w.>:])(::|std::)?(" + "|".join(CALLS) + r")\s*\((?!\s*\))")
RAW_CALL = re.compile(r"\b(?:SYS|__NR)_(" + "|".join(CALLS) + r")\b")
KERNEL_LITERAL = re.compile(r'\s*"/(?:dev|proc|sys)/[\w/.]*"\s*[,)]')
FILESYSTEM = re.compile(r"(?:std::)?\b(?:filesystem|fs)::(remove_all|remove|rename|create_director(?:y|ies)|create_symlink|"
                        r"copy(?:_file)?|permissions|resize_file)\s*\(")
STREAM = re.compile(r"\bstd::(?:basic_)?([io]?fstream)\s+\w*\s*[({]")
# A line that declares or defines a function: specifiers, a type, the name, parameters.
DECLARED = re.compile(r"^[ ]*(?:(?:static|inline|virtual|explicit|constexpr|\[\[\w+\]\])[ ]+)*"
                      r"(?!(?:return|co_return|throw|else|case|default|do|goto)\b)[A-Za-z_][\w:<>,*& ]*[ &*>](?:\w+::)*"
                      r"(" + "|".join(CALLS) + r")\s*\([^;=]*[,)]?\s*(?:const\b[^;{]*|override\s*)?(?:;|\{.*)?\s*$", re.M)
STRING_OR_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)


# Folders whose code handles directories of a sandbox by a path from earlier: a plan, a session, a record.
STORED_FOLDERS = ("src/api/", "src/host/", "src/isolation/", "src/session/", "src/supervise/")
STORED_OPEN = re.compile(r"\bRootDir::open\s*\(")
STORED_WHY = "a sandbox may have replaced what the path leads to"


def code_only(text):
    """Returns the text with comments and literals replaced by spaces; line numbers do not change."""
    return STRING_OR_COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def own_functions(path):
    """Returns the checked names that are functions of the file or its header (JsonWriter::open)."""
    text = ""
    for file in {path, path.with_suffix(".h")}:
        if file.exists():
            text += code_only(file.read_text(errors="replace"))
    return {name for name in CALLS if any(match.group(1) == name for match in DECLARED.finditer(text))}


def findings(path):
    ours = own_functions(path)
    text = path.read_text(errors="replace")
    for number, (line, original) in enumerate(zip(code_only(text).splitlines(), text.splitlines()), 1):
        if path.as_posix().partition("/src/")[2].startswith(tuple(one[4:] for one in STORED_FOLDERS)):
            for _ in STORED_OPEN.finditer(line):
                yield number, "openRoot", STORED_WHY
        for match in RAW_CALL.finditer(line):
            yield number, f"SYS_{match.group(1)}", CALLS[match.group(1)]
        for match in CALL.finditer(line):
            if match.group(1) != "::" and match.group(2) in ours:
                continue
            if KERNEL_LITERAL.match(original, match.end()):
                continue
            yield number, match.group(2), CALLS[match.group(2)]
        for match in FILESYSTEM.finditer(line):
            yield number, f"filesystem::{match.group(1)}", "resolves by string and follows links"
        for match in STREAM.finditer(line):
            yield number, match.group(1), CALLS["open"]


def read_allowlist(path):
    """Maps `file` or `file call` to its reason."""
    entries = {}
    if not path.exists():
        return entries
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        key, colon, reason = line.partition(":")
        if not colon or not reason.strip() or len(key.split()) not in (1, 2):
            sys.exit(f"{path}:{number}: expected `file [call]: reason`")
        entries[tuple(key.split())] = reason.strip()
    return entries


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    allowed = read_allowlist(root / "scripts/path_allowlist.txt")
    used = set()
    problems = 0
    for path in sorted((root / "src").rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix not in (".cc", ".h", ".c") or name.startswith("src/sys/") or name.endswith("_test.cc"):
            continue
        for number, call, why in findings(path):
            key = next((key for key in ((name, call), (name,)) if key in allowed), None)
            if key:
                used.add(key)
                continue
            problems += 1
            print(f"{name}:{number}: {call} by string path outside src/sys: {why}\n"
                  "  use sys::RootDir, or add the file with a reason to scripts/path_allowlist.txt", file=sys.stderr)
    for key in sorted(set(allowed) - used):
        problems += 1
        print(f"scripts/path_allowlist.txt: `{' '.join(key)}` is unused; remove it", file=sys.stderr)
    if not problems:
        print(f"paths: no string-path call outside src/sys, {len(allowed)} allowed with reasons")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
