#!/usr/bin/env python3
"""tools_test.py [NAME...]: runs tools in a directory with a planted file, and compares with catalogue.jsonl.

Each case plants a file whose content creates a canary, and starts the tool as a person would who only opens a directory,
a shell, a debugger, an interpreter or an editor. If the canary is there, the catalogue must call the file protected. As
root the tools run as the ordinary user caisson-names. They run without network, in a PID namespace, and in a directory
that is removed afterwards. NAME selects cases. Prints a table; the exit status is 1 if a case failed.
"""
import fnmatch
import json
import os
import pathlib
import pty
import pwd
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from tools import CASES

HERE = pathlib.Path(__file__).resolve().parent
USER = "caisson-names"
SECONDS = 30


def catalogue():
    """Yields (pattern in lower case, whether it is protected)."""
    for line in (HERE / "catalogue.jsonl").read_text().splitlines():
        row = json.loads(line)
        for name in row["names"]:
            yield name.lower(), row["verdict"] == "protected"


def verdict(rows, path):
    """Returns the verdict about a path: True, False, or None if the catalogue does not have it."""
    parts = path.lower().split("/")
    suffixes = ["/".join(parts[at:]) for at in range(len(parts))]
    found = None
    for pattern, protected in rows:
        if pattern.endswith("/"):
            fits = any(fnmatch.fnmatchcase(one, pattern + "*") for one in suffixes)
        else:
            fits = any(fnmatch.fnmatchcase(one, pattern.replace("[", "[[]")) for one in suffixes)
        if fits:
            found = found or protected
    return found


def as_user():
    """Returns the command that drops privileges and network."""
    spaces = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        return [*spaces, "--map-current-user"]
    try:
        user = pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", USER], check=True)
        user = pwd.getpwnam(USER)
    return [*spaces, "--", "setpriv", "--reuid", USER, "--regid", str(user.pw_gid), "--clear-groups", "--inh-caps=-all",
            "--no-new-privs"]


class Directory:
    """A home directory with a project in it, of the ordinary user."""

    def __init__(self, dropped):
        self.dropped = dropped
        self.root = tempfile.mkdtemp(prefix="caisson-names-")
        os.chmod(self.root, 0o755)
        self.work = f"{self.root}/work"
        os.mkdir(self.work)
        self.owner = pwd.getpwnam(USER) if os.geteuid() == 0 else None
        if self.owner:
            os.chown(self.work, self.owner.pw_uid, self.owner.pw_gid)
        self.home, self.project, self.canary = (f"{self.work}/{name}" for name in ("home", "home/project", "canary"))
        self.run(["mkdir", "-p", self.project])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # What the tools left is removed as the ordinary user. A killed tool may write for a moment longer.
        for _ in range(20):
            self.run(["rm", "-rf", "--one-file-system", self.work])
            if not os.path.isdir(self.work) or not os.listdir(self.work):
                break
            time.sleep(0.5)
        for directory in (self.work, self.root):
            if os.path.isdir(directory):
                os.rmdir(directory)

    def write(self, path, content):
        """Writes a file as the ordinary user."""
        content = content.replace("CANARY", self.canary).replace("PROJECT", self.project).replace("HOME", self.home)
        self.run(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1" && chmod 755 "$1"', "sh", path],
                 content.encode())

    def command(self, argv):
        """Returns a command of the ordinary user."""
        environment = [f"HOME={self.home}", f"TMPDIR={self.work}", f"USER={USER}", "LANG=C.UTF-8", "TERM=xterm",
                       "PATH=/usr/local/bin:/usr/bin:/bin:/usr/games", "SHELL=/bin/sh", "ANSIBLE_LOCALHOST_WARNING=0"]
        return [*self.dropped, "env", "-i", *environment, *argv]

    def run(self, argv, content=b""):
        """Runs a command of the ordinary user to its end."""
        subprocess.run(self.command(argv), cwd=self.work, input=content, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, timeout=SECONDS, check=False)

    def interact(self, command, typed):
        """Runs a shell command in the project on a terminal, types a text, and returns what it printed."""
        script = command.replace("CANARY", self.canary).replace("PROJECT", self.project).replace("HOME", self.home)
        master, slave = pty.openpty()
        process = subprocess.Popen(self.command(["sh", "-c", script]), cwd=self.project, stdin=slave, stdout=slave,
                                   stderr=slave, start_new_session=True)
        os.close(slave)
        # A tool may drop what was typed before its prompt, so it is typed again.
        output, turns, end = b"", [typed.encode(), b"", b"", b"\x04", b""], time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < end and not os.path.lexists(self.canary):
            readable, _, _ = select.select([master], [], [], 0.3)
            try:
                if readable:
                    output += os.read(master, 65536)
                elif typed:
                    os.write(master, turns[0])
                    turns.append(turns.pop(0))
            except OSError:
                break
        if process.poll() is None:
            process.kill()  # and with --kill-child all that it started
        process.wait()
        os.close(master)
        return output.decode(errors="replace")


def run_case(case, dropped):
    """Returns whether the canary is there, and the output."""
    with Directory(dropped) as place:
        for path, content in case.get("with", {}).items():
            place.write(f"{place.home}/{path}", content)
        before = case.get("before")
        if before:
            place.interact(before, "")
        base = place.home if case.get("home") else place.project
        if "content" in case:
            place.write(f"{base}/{case['file']}", case["content"])
        output = place.interact(case["command"], case.get("typed", "\x04"))
        return os.path.lexists(place.canary), output


def main():
    selected = sys.argv[1:]
    rows = list(catalogue())
    dropped = as_user()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    tools = set()
    for case in CASES:
        program = case.get("program") or shlex.split(case["command"])[0]
        label = f"{program:<12} {'~/' if case.get('home') else './'}{case['file']}"
        if selected and program not in selected and case["file"] not in selected:
            continue
        if not shutil.which(program, path="/usr/local/bin:/usr/bin:/bin:/usr/games"):
            counts["skipped"] += 1
            print(f"skipped  {label}: {program} is not installed", flush=True)
            continue
        judged = verdict(rows, case["file"])
        ran, output = run_case(case, dropped)
        tools.add(program)
        failed = judged is None or (ran and not judged)
        counts["failed" if failed else "passed"] += 1
        words = {True: "protected", False: "ordinary", None: "not in the catalogue"}
        print(f"{'FAILED' if failed else 'passed':<8} {label}: {'ran' if ran else 'did not run'}, {words[judged]}",
              flush=True)
        if os.environ.get("VERBOSE") and (failed or not ran):
            print(output)
    print(f"{len(tools)} tools: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
