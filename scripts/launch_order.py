#!/usr/bin/env python3
"""launch_order.py BUILD_DIR: writes src/cli/launch_order.ld, the functions of one launch and of one session command.

The linker puts them side by side. Strewn over the whole program each of them would bring 64 KiB of it into memory, and
cost one page fault each. Needs valgrind; run it when a launch has come to use many functions that are not in the
list. A name that no longer exists does no harm.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """/* Made by scripts/launch_order.py: the functions of one launch and of one session command, side by side.
   Functions of the C library come with the whole file they are in. */
SECTIONS
{
  .text.launch :
  {
"""
TAIL = """  }
}
INSERT BEFORE .text;
"""
FUNCTION = re.compile(r"^c?fn=\(\d+\) (.*)$")


def executed(caisson):
    """Demangled names of what the supervisor and the processes it forks execute, for a run and for a session's command."""
    names = set()
    with tempfile.TemporaryDirectory() as directory:
        workspace = os.path.join(directory, "workspace")
        os.mkdir(workspace)
        os.environ["CAISSON_HOME"] = os.path.join(directory, "home")
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/calls.%p", caisson]
        subprocess.run([*valgrind, "run", "--", "true"], cwd=workspace, check=False, capture_output=True)
        subprocess.run([caisson, "session", "create", "--name", "order"], cwd=workspace, check=True, capture_output=True)
        command = ["session", "exec", "order", "--", "true"]
        subprocess.run([caisson, *command], check=True)  # the first keeps the plan by which the others go
        subprocess.run([*valgrind, *command], cwd=workspace, check=False, capture_output=True)
        subprocess.run([caisson, "session", "destroy", "order"], check=True)
        for path in glob.glob(os.path.join(directory, "calls.*")):
            with open(path, encoding="utf-8", errors="replace") as lines:
                names.update(re.sub(r"'\d+$", "", found[1].strip()) for found in map(FUNCTION.match, lines) if found)
    return names


def symbols(caisson, *options):
    listed = subprocess.run(["nm", *options, caisson], check=True, capture_output=True, text=True).stdout
    return [line.split(" ", 2) for line in listed.splitlines()]


def library_files(names):
    """The members of the C library's archive that define what was executed."""
    archive = subprocess.run(["cc", "-print-file-name=libc.a"], check=True, capture_output=True, text=True).stdout.strip()
    files = {}
    for line in subprocess.run(["nm", "-A", "--defined-only", archive], check=False, capture_output=True,
                               text=True).stdout.splitlines():
        place, kind, symbol = line.rsplit(" ", 2)
        if kind in "tTwWi":
            files.setdefault(symbol, set()).add(place.split(":")[1])
    found = (files.get(name.split("@")[0], ()) for name in names)
    return sorted({next(iter(members)) for members in found if len(members) == 1})


def main():
    caisson = os.path.abspath(os.path.join(sys.argv[1], "caisson"))
    names = executed(caisson)
    wanted = set()
    for symbol, demangled in zip(symbols(caisson), symbols(caisson, "-C")):
        # Ours and the C++ library's: only these have separate sections.
        if len(symbol) == 3 and symbol[1] in "tTwW" and symbol[2].startswith("_Z") and demangled[2] in names:
            wanted.add(symbol[2])
    if len(wanted) < 100:
        sys.exit(f"launch_order.py: only {len(wanted)} functions were seen; is valgrind here, and did the launch work?")
    with open(os.path.join(ROOT, "src/cli/launch_order.ld"), "w", encoding="utf-8") as file:
        file.write(HEAD + "".join(f"    *(.text.{name})\n" for name in sorted(wanted)))
        file.write("".join(f"    *libc.a:{name}(.text .text.*)\n" for name in library_files(names)) + TAIL)
    print(f"{len(wanted)} functions, {len(library_files(names))} files of the C library")


if __name__ == "__main__":
    main()
