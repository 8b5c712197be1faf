#!/usr/bin/env python3
"""commit_history.py SEED [COUNT]: random histories of a session, a second session and the host on one workspace, with
commits of everything or of some paths, uncommits, and commits that are killed.

Every file that anybody writes has unique content, so a path with its content says who saw it. After each commit:
- a path changed only if the report names it, or a directory above it that was removed or replaced;
- what was there is what the session saw when it began, or what it committed itself: nothing of the host is lost;
- what is there now is what the session has.
An uncommit right after a commit restores content, permissions and links. After a kill each path is old or new.
The tested program is CAISSON_BIN.
"""
import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time

CAISSON = os.environ["CAISSON_BIN"]
DIRECTORIES = ["", "d", "d/e", "d/e/f", "g", "g/h"]
FILES = ["a", "b", "d/a", "d/b", "d/e/a", "d/e/f/a", "g/a", "g/h/a"]


class Failure(Exception):
    pass


def caisson(*arguments, kill_after=None):
    process = subprocess.Popen([CAISSON, "session", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    if process.returncode not in (0, 1, 125):
        raise Failure(f"caisson session {' '.join(arguments)}: {process.returncode}\n{err}")
    return process.returncode, out, err


def read_tree(top):
    """Returns a map from path to ("d", mode), ("f", mode, content) or ("l", target)."""
    tree = {}
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            key = os.path.relpath(path, top)
            if key.split("/")[0].startswith(".caisson-"):
                continue
            if stat.S_ISLNK(info.st_mode):
                tree[key] = ("l", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                tree[key] = ("d", stat.S_IMODE(info.st_mode))
            else:
                with open(path) as file:
                    tree[key] = ("f", stat.S_IMODE(info.st_mode), file.read())
    return tree


def same(one, other):
    """Whether two objects are the same but for permissions, which a commit limits."""
    if one is None or other is None or one[0] != other[0]:
        return one == other
    return True if one[0] == "d" else one[-1] == other[-1]


class History:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.top = tempfile.mkdtemp(prefix="commit-history.")
        self.workspace = os.path.join(self.top, "w")
        os.mkdir(self.workspace)
        os.environ["CAISSON_HOME"] = os.path.join(self.top, "home")
        self.words = 0
        self.log = []

    def change(self, who):
        """A shell command that changes something."""
        self.words += 1
        pick, word = self.random.choice, f"{who}{self.words}"
        file, directory, other = pick(FILES), pick(DIRECTORIES[1:]), pick(DIRECTORIES[1:])
        if self.random.random() < 0.5:  # what once lost files: moves on the host against removals and edits in a session
            return pick([f"mv -T {directory} {other}/{word}", f"mv -T {directory} x && mv -T {other} {directory}; mv -T x {other}"]
                        if who == "host" else
                        [f"rm -rf {directory}", f"echo {word} >> {file}", f"rm -rf {directory}; echo {word} > {directory}",
                         f"rm -rf {directory}; mkdir {directory}; echo {word} > {directory}/n"])
        return pick([
            f"echo {word} > {file}", f"echo {word} > {file}", f"echo {word} >> {file}", f"rm -f {file}",
            f"mkdir -p {directory}", f"rm -rf {directory}", f"rm -rf {directory}; mkdir {directory}; echo {word} > {directory}/n",
            f"rm -rf {directory}; echo {word} > {directory}", f"rm -rf {file}; ln -s ../{word} {file}",
            f"test -f {file} && chmod {pick(['600', '640', '644', '755'])} {file}", f"test -d {directory} && chmod 700 {directory}",
            f"mv -T {file} {pick(FILES)}", f"mv -T {directory} {other}/{word}", f"mv -T {directory} {directory}.{word}",
            f"mv -T {directory} x && mv -T {other} {directory}; mv -T x {other}",
        ])

    def host(self):
        command = self.change("host")
        self.log.append(f"host: {command}")
        subprocess.run(["sh", "-c", f"umask 022; {command}"], cwd=self.workspace, stderr=subprocess.DEVNULL)
        time.sleep(0.012)  # change times have the precision of the clock tick

    def work(self, session):
        commands = "; ".join(f"({self.change(session['name'])})" for _ in range(self.random.randint(1, 3)))
        self.log.append(f"{session['name']}: {commands}")
        caisson("exec", session["id"], "--", "sh", "-c", f"umask 022; {commands} 2>/dev/null; true")
        time.sleep(0.012)

    def create(self, name):
        time.sleep(0.02)
        begun = read_tree(self.workspace)
        identifier = caisson("create", "--workspace", self.workspace)[1].strip()
        time.sleep(0.02)
        return {"name": name, "id": identifier, "begun": begun, "left": {}}

    def view(self, session):
        """What the session added and modified, from its layers: an overlay shows in part what the host removed below it."""
        place = os.path.join(self.top, "view")
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
        command = [CAISSON, "session", "export", "--format", "tar", session["id"]]
        packed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        subprocess.run(["tar", "-x", "-p", "-C", place], input=packed.stdout, check=True)
        return read_tree(place)

    def check(self, session, before, after, view, named):
        """Compares the workspace before and after a commit. `named`: paths that the commit says it changed."""
        for path in sorted(set(before) | set(after)):
            old, new = before.get(path), after.get(path)
            if old == new:
                continue
            above = [path[:n] for n, letter in enumerate(path) if letter == "/"]
            if named is not None and path not in named and not any(one in named for one in above):
                raise Failure(f"{path} changed from {old} to {new}, which was not shown")
            if new is not None and not same(new, view.get(path)):
                raise Failure(f"{path} became {new}, the session has {view.get(path)}")
            seen = same(old, session["begun"].get(path)) or same(old, session["left"].get(path))
            if old is not None and old[0] != "d" and not seen:
                raise Failure(f"{path} was {old}, which the session did not see, and became {new}")

    def commit(self, session):
        paths = self.random.sample(FILES + DIRECTORIES[1:], 3) if self.random.random() < 0.3 else []
        kill = self.random.uniform(0.002, 0.12) if self.random.random() < 0.3 else None
        view, before = self.view(session), read_tree(self.workspace)
        done = caisson("commit", "--json", session["id"], *paths, kill_after=kill)
        self.log.append(f"{session['name']}: commit {paths} {'killed' if done is None else done[0]}")
        if done is None:
            caisson("diff", session["id"])  # finishes it
        if done is not None and done[0] == 125:
            raise Failure(f"the commit failed: {done[2]}")
        after = read_tree(self.workspace)
        report = json.loads(done[1]) if done else None
        self.check(session, before, after, view, report and {one["path"] for one in report["applied"]})
        if report and self.random.random() < 0.4:
            if not report["applied"]:
                return
            undone = caisson("uncommit", "--json", session["id"])
            self.log.append(f"{session['name']}: uncommit {undone[0]}")
            if undone[0] != 0 or read_tree(self.workspace) != before:
                raise Failure(f"uncommit: {undone[1]} {undone[2]}\nbefore {before}\nis     {read_tree(self.workspace)}")
            return
        for path in set(before) | set(after):
            if before.get(path) != after.get(path):
                session["left"][path] = after.get(path)

    def run(self):
        for directory in DIRECTORIES[1:]:
            os.makedirs(os.path.join(self.workspace, directory), exist_ok=True)
        for path in FILES:
            with open(os.path.join(self.workspace, path), "w") as file:
                file.write(f"begin {path}\n")
        for _ in range(3):
            self.host()
        sessions = [self.create("one"), self.create("two")]
        try:
            for _ in range(7):
                what = self.random.random()
                if what < 0.35:
                    self.host()
                elif what < 0.7:
                    self.work(self.random.choice(sessions))
                else:
                    self.commit(self.random.choice(sessions))
            for session in sessions:
                self.commit(session)
        finally:
            for session in sessions:
                caisson("destroy", session["id"])
            shutil.rmtree(self.top, ignore_errors=True)


def main():
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for seed in range(first, first + count):
        history = History(seed)
        try:
            history.run()
        except Failure as failure:
            print(f"seed {seed}: {failure}\n" + "\n".join(history.log))
            return 1
    print(f"{count} histories from {first}: nothing lost, nothing unshown")
    return 0


if __name__ == "__main__":
    sys.exit(main())
