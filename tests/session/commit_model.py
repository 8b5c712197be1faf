#!/usr/bin/env python3
"""commit_model.py SEED: makes random changes in a session and in the real workspace, commits, and compares the result
with an independent implementation of a commit.

The model has three trees: the workspace at the start of the session, the session's tree, and the real workspace. A path
that the session changed is committed unless the path also changed in the real workspace, its name is in the model's list
of protected names, or it is a link out of the workspace. A path also has the names that links of the real workspace give
it, and a link to a protected path, or on the way to one, is not committed. A directory that the session removed stays if
it contains a protected name. Access for group and others is never given to an existing file. The tested program is CAISSON_BIN.
"""
import hashlib
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
NAMES = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "g", "g/h", ".envrc", "d/.vscode", "d/.vscode/t", "AGENTS.md"]
PROTECTED_FILES = {".envrc", "agents.md"}
PROTECTED_DIRECTORIES = {".vscode"}


def caisson(*arguments, check=True):
    done = subprocess.run([CAISSON, "session", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if check and done.returncode not in (0, 1):
        raise SystemExit(f"caisson session {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done


def read_tree(top):
    """Returns a map from path to ("d", mode), ("f", mode, hash) or ("l", target)."""
    tree = {}
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            key = os.path.relpath(path, top)
            if stat.S_ISLNK(info.st_mode):
                tree[key] = ("l", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                tree[key] = ("d", info.st_mode & 0o755)
            else:
                with open(path, "rb") as file:
                    tree[key] = ("f", info.st_mode & 0o755, hashlib.sha256(file.read()).hexdigest())
    return tree


def random_change(random_, word):
    one, other = random_.choice(NAMES), random_.choice(NAMES)
    return random_.choice([
        f"echo {word} > {one}", f"echo {word} > {one}", f"echo {word} >> {one}", f"rm -rf {one}", f"mkdir -p {one}",
        f"test -d {one} || ln -sfn {random_.choice(['a', 'd', '../a', '../..', '/etc', 'none/../../x', 'd/e'])} {one}",
        f"test -f {one} && chmod {random_.choice(['755', '640'])} {one}",
        f"test -f {one} && test ! -L {one} && test ! -d {other} && mv -T {one} {other}",
    ])


def parents(path):
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def is_protected(path):
    parts = path.lower().split("/")
    return parts[-1] in PROTECTED_FILES or any(part in PROTECTED_DIRECTORIES for part in parts)


def end_of_link(tree, path, target, passed=None):
    """Returns the path that a link leads to, which need not exist, or None if it leads out or in a circle.

    Adds the links on the way to `passed`.
    """
    at, rest = path.split("/")[:-1], target.split("/")
    hops = 1
    if target.startswith("/"):
        return None
    while rest:
        part = rest.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            if not at:
                return None
            at.pop()
            continue
        there = tree.get("/".join(at + [part]), ("",))
        if there[0] != "l":
            at.append(part)
            continue
        hops += 1
        if passed is not None:
            passed.append("/".join(at + [part]))
        if hops > 40 or there[1].startswith("/"):
            return None
        rest = there[1].split("/") + rest
    return "/".join(at)


def other_names(tree):
    """Returns pairs of a place and a name that links with protected names give it.

    The name is None for a link on the way, which is protected itself, and nothing below it.
    """
    links = {path: entry[1] for path, entry in tree.items() if entry[0] == "l"}
    found, work = [], [(path, path, 1) for path in links if is_protected(path)]
    while work:
        path, name, depth = work.pop()
        passed = []
        place = end_of_link(tree, path, links[path], passed)
        found += [(way, None) for way in passed if (way, None) not in found]
        if place is None or (place, name) in found:
            continue
        found.append((place, name))
        for other in links if depth < 4 else []:
            if inside(other, place) and is_protected(renamed(other, place, name)):
                work.append((other, renamed(other, place, name), depth + 1))
    return found


def inside(path, place):
    return not place or path == place or path.startswith(place + "/")


def renamed(path, place, name):
    rest = path[len(place):].lstrip("/")
    return f"{name}/{rest}" if rest else name


def is_protected_in(names, path):
    def by(place, name):
        return path == place if name is None else inside(path, place) and is_protected(renamed(path, place, name))
    return is_protected(path) or any(by(place, name) for place, name in names)


def is_held_link(tree, names, path, target):
    if any(inside(place, path) for place, _ in names):
        return True
    end = end_of_link(tree, path, target)
    return end is not None and is_protected_in(names, end)


def leads_out(tree, path, target, depth=0):
    """Returns whether a link leads out of `tree`, without the file system; also true if a part of its path is missing."""
    if target.startswith("/") or depth > 40:
        return True
    at = path.split("/")[:-1]
    rest = [part for part in target.split("/") if part not in ("", ".")]
    hops = 0
    while rest:
        part = rest.pop(0)
        if part == "..":
            if not at:
                return True
            at.pop()
            continue
        there = tree.get("/".join(at + [part]))
        if there and there[0] == "l":
            hops += 1
            if hops > 40 or there[1].startswith("/"):
                return True
            rest = [one for one in there[1].split("/") if one not in ("", ".")] + rest
            continue
        at.append(part)
        if rest and (not there or there[0] != "d"):
            return True
    return False


def climbs_after_name(target):
    named = False
    for part in target.split("/"):
        if part == ".." and named:
            return True
        named = named or part not in ("", ".", "..")
    return False


def changed_paths(base, session):
    """Returns the changes as a session reports them: a removed directory is one change."""
    changed = []
    for path in sorted(set(base) | set(session)):
        old, new = base.get(path), session.get(path)
        if old == new:
            continue
        if new is None and any(p in base and session.get(p, ("x",))[0] != "d" for p in parents(path)):
            continue  # removed with its directory
        changed.append(path)
    return changed


def below(tree, top):
    return [path for path in tree if path.startswith(top + "/")]


def limited(new, there):
    """Returns `new` without access for group and others that `there`, an object of the same type, does not give."""
    if not new or not there or new[0] != there[0] or new[0] == "l":
        return new
    # Executing a file is access only for those who may not read it.
    access = 0o77 if new[0] == "d" else 0o66 | (~there[1] & 0o44) >> 2
    gained = new[1] & ~there[1] & access
    return (new[0], new[1] & ~gained, *new[2:])


def commit(base, session, host, touched):
    """Returns the tree after a commit. `touched`: paths that the host changed since the session began."""
    result = dict(host)
    names = other_names(host)
    links = []
    for path in changed_paths(base, session):
        new, there = limited(session.get(path), host.get(path)), host.get(path)
        blocked = any(p in result and result[p][0] != "d" for p in parents(path))
        missing = any(p not in result for p in parents(path))
        if new == there or (new and there and new[0] == there[0] == "d" and new[1] == there[1]):
            continue
        if is_protected_in(names, path) or blocked or (missing and new is not None):
            continue
        if new and new[0] == "l" and is_held_link(host, names, path, new[1]):
            continue
        if new is None and there is None:
            continue
        both_directories = new and there and new[0] == there[0] == "d"
        if there and there[0] == "d" and not both_directories:
            if path not in base or any(p in touched or is_protected_in(names, p) for p in below(host, path)):
                continue
        elif there and not both_directories and (path not in base or path in touched):
            continue
        elif not there and path in touched and path in base and new and new[0] != "d":
            continue
        if new and new[0] == "l":
            links.append(path)
        for gone in below(result, path) if not both_directories else []:
            del result[gone]
        if new is None:
            del result[path]
        elif new[0] == "d":
            result[path] = ("d", new[1] | 0o700)
        else:
            result[path] = new
    while True:
        held = [p for p in links if leads_out(result, p, session[p][1]) or climbs_after_name(session[p][1])]
        if not held:
            return result
        for path in held:
            links.remove(path)
            if path in host:
                result[path] = host[path]
                for child in below(host, path):
                    result[child] = host[child]
            else:
                del result[path]


def main():
    random_ = random.Random(int(sys.argv[1]))
    top = tempfile.mkdtemp(prefix="commit-model.")
    os.environ["CAISSON_HOME"] = os.path.join(top, "home")
    workspace = os.path.join(top, "workspace")
    os.mkdir(workspace)
    try:
        begin = "; ".join(random_change(random_, f"begin{n}") for n in range(12))
        subprocess.run(["sh", "-c", f"umask 022; {begin}"], cwd=workspace, stderr=subprocess.DEVNULL)
        identifier = caisson("create", "--workspace", workspace).stdout.strip()
        time.sleep(0.05)  # change times have the clock tick's granularity
        for attempt in range(4):
            base = read_tree(workspace)
            script = "; ".join(random_change(random_, f"session{attempt}.{n}") for n in range(6))
            caisson("exec", identifier, "--", "sh", "-c", f"umask 022; ({script}) 2>/dev/null; true")
            view = os.path.join(top, f"view{attempt}")
            os.mkdir(view)
            packed = subprocess.run([CAISSON, "session", "exec", identifier, "--", "tar", "-c", "."], stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "-p", "-C", view], input=packed.stdout, check=True)
            session = read_tree(view)
            host_script = ""
            # The host changes existing files in the last round only: old conflicts would disturb later rounds.
            if attempt == 3:
                names = [p for p, what in base.items() if what[0] == "f" and random_.random() < 0.4]
                for name in names:
                    with open(os.path.join(workspace, name), "a") as file:
                        file.write("host\n")
                host_script = f"host: {names}"
            host = read_tree(workspace)
            touched = {p for p in set(host) | set(base) if host.get(p) != base.get(p)}
            expected = commit(base, session, host, touched)
            # The session sees host changes to files that it did not change.
            report = json.loads(caisson("commit", "--json", identifier).stdout)
            found = read_tree(workspace)
            if found != expected:
                print(f"seed {sys.argv[1]} round {attempt}\nbegin: {begin}\nsession: {script}\n{host_script}")
                for path in sorted(set(found) | set(expected)):
                    if found.get(path) != expected.get(path):
                        print(f"  {path}: expected {expected.get(path)}, found {found.get(path)}")
                print(json.dumps({key: report[key] for key in ("conflicts", "held", "skipped")}, indent=1))
                return 1
            # Held and conflicting paths stay different; start the next round with a clean session.
            if set(report["held"] and [1] or []) or report["conflicts"]:
                caisson("destroy", identifier)
                identifier = caisson("create", "--workspace", workspace).stdout.strip()
                time.sleep(0.05)
        return 0
    finally:
        caisson("destroy", identifier, check=False)
        shutil.rmtree(top)


if __name__ == "__main__":
    sys.exit(main())
