#!/usr/bin/env python3
"""secrets_busy.py [--small N] [--large N] [--each N] [--files N] [--many N] [--busy N]: are secrets hidden on a busy machine?

Before each run new secrets are put into random directories of a large tree; the run tries to read them, some older ones,
and an ordinary file beside each, which must be readable. Half of the runs have to search everything, since the index of
the search was removed. Busy loops take the processors meanwhile. Prints a table; the exit status is 1 if a secret was
read or a run failed. The tested program is CAISSON_BIN.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
for other in ("api", "mcp"):
    sys.path.insert(0, str(HERE.parents[1] / other))
import api  # noqa: E402
import killed_server_test as mcp  # noqa: E402

NAMES = [".env", ".env.production", "prod.env", ".npmrc", ".aws/credentials", "terraform.tfstate", "id_ed25519", ".ENV",
         ".docker/config.json", ".kube/config"]
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n"
TEXT = {".npmrc": "//registry.example/:_authToken={}\n", ".aws/credentials": "[default]\naws_secret_access_key = {}\n",
        "id_ed25519": KEY, ".docker/config.json": '{{"auths":{{"registry.example":{{"auth":"{}"}}}}}}\n',
        "terraform.tfstate": '{{"version":4,"resources":[{{"password":"{}"}}]}}\n',
        ".kube/config": "apiVersion: v1\nusers:\n- user:\n    token: {}\n"}
SECRET, ORDINARY = "secret-canary-", "ordinary-canary-"


class Tree:
    """A directory with `files` files, fifty in each directory, up to ten levels deep."""

    def __init__(self, root, files):
        self.root, self.files = root, files
        self.random = random.Random(files)
        self.directories = [root]
        os.makedirs(root)
        for number in range(max(1, files // 50)):
            parent = self.random.choice(self.directories[-400:])
            if parent.count("/") - root.count("/") >= 10:
                parent = root
            directory = f"{parent}/dir{number}"
            os.mkdir(directory)
            self.directories.append(directory)
            for file in range(50):
                with open(f"{directory}/file{file}.c", "w") as out:
                    out.write("int x;\n")
        self.known = []  # (secret, ordinary), relative

    def add(self, number):
        for part in range(3):
            directory = self.random.choice(self.directories)
            name = self.random.choice(NAMES)
            path = f"{directory}/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(TEXT.get(name, "API_KEY={}\n").format(f"{SECRET}{number}.{part}."))
            beside = f"{directory}/beside{number}.{part}.c"
            with open(beside, "w") as out:
                out.write(f"// {ORDINARY}{number}.{part}.\n")
            self.known.append((os.path.relpath(path, self.root), os.path.relpath(beside, self.root)))

    def command(self):
        older = self.random.sample(self.known[:-3], min(5, len(self.known) - 3))
        paths = [path for pair in self.known[-3:] + older for path in pair]
        return "cat " + " ".join(f"'{path}'" for path in paths) + " 2>/dev/null; true", 3 + len(older)


class Run:
    def __init__(self, tree, home, mode="overlay"):
        self.tree, self.mode = tree, mode
        self.environment = dict(os.environ, CAISSON_HOME=home)

    def caisson(self, *words):
        done = subprocess.run([api.CAISSON, *words], env=self.environment, cwd=self.tree.root, capture_output=True,
                              text=True, timeout=1800)
        if done.returncode != 0:
            raise RuntimeError(f"caisson {' '.join(words[:4])}: {done.returncode}: {done.stderr[-600:]}")
        return done.stdout

    def __call__(self, command):
        return self.caisson("run", "-q", "--workspace", f"{self.tree.root}:{self.mode}", "--", "sh", "-c", command)

    def close(self):
        pass


class Session(Run):
    def __call__(self, command):
        name = self.caisson("session", "create", "--workspace", self.tree.root).split()[0]
        try:
            return self.caisson("session", "exec", name, "--", "sh", "-c", command)
        finally:
            self.caisson("session", "destroy", name)


class Mcp:
    def __init__(self, tree, home):
        mcp.TIMEOUT = 1800
        self.server = mcp.Stdio(dict(os.environ, CAISSON_HOME=home), "--workspace", tree.root)
        self.root = tree.root

    def __call__(self, command):
        made = self.server.tool("sandbox_create", workspace_path=self.root)
        name = made.get("sandbox_id")
        if not name:
            raise RuntimeError(json.dumps(made)[:600])
        result = self.server.tool("sandbox_execute", sandbox_id=name, command=command)
        self.server.tool("sandbox_destroy", sandbox_id=name)
        return json.dumps(result)

    def close(self):
        self.server.end()


class Http:
    def __init__(self, tree, home):
        self.server = api.Server("--allow-workspace", tree.root, home=home)
        self.root, self.owner = tree.root, api.Client(self.server)

    def __call__(self, command):
        made = self.owner.call("POST", "/v1/sandboxes", {"workspace": self.root}, timeout=1800)
        if made.status != 201:
            raise RuntimeError(repr(made))
        at = f"/v1/sandboxes/{made.json['id']}"
        done = self.owner.call("POST", at + "/commands", {"command": command}, timeout=1800)
        self.owner.call("DELETE", at, timeout=1800)
        return done.body.decode(errors="replace")

    def close(self):
        self.server.close()


INTERFACES = {
    "run": Run, "rw": lambda tree, home: Run(tree, home, "rw"), "ro": lambda tree, home: Run(tree, home, "ro"),
    "session": Session, "mcp": Mcp, "http": Http}


def row(name, tree, count, base):
    home = tempfile.mkdtemp(prefix="h-", dir=base)
    read, bad, begin = 0, [], time.monotonic()
    interface = INTERFACES[name](tree, home)
    try:
        for number in range(count):
            tree.add(f"{name}{number}")
            if number % 2:
                shutil.rmtree(home + "/index", ignore_errors=True)
            command, expected = tree.command()
            try:
                output = interface(command)
            except (RuntimeError, subprocess.TimeoutExpired, TimeoutError) as error:
                bad.append(str(error))
                continue
            read += output.count(SECRET)
            if output.count(ORDINARY) != expected:
                bad.append(f"{output.count(ORDINARY)} of {expected} ordinary files were readable: {output[-300:]}")
    finally:
        interface.close()
    seconds = (time.monotonic() - begin) / max(count, 1)
    print(f"{name:8} {tree.files:8} {count:5} {read:9} {len(bad):7} {seconds:8.2f}", flush=True)
    for text in bad[:3]:
        print("    " + text, flush=True)
    return read + len(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=200, help="runs in the small tree")
    parser.add_argument("--large", type=int, default=50, help="runs in the large tree")
    parser.add_argument("--each", type=int, default=20, help="sessions, and so on, in the small tree")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=500_000)
    parser.add_argument("--busy", type=int, default=16)
    options = parser.parse_args()
    base = tempfile.mkdtemp(prefix="ca-busy-", dir=os.environ.get("CAISSON_TEST_DIR", "/tmp"))
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(options.busy)]
    problems = 0
    try:
        print(f"{'':8} {'files':>8} {'runs':>5} {'read':>9} {'failed':>7} {'s each':>8}", flush=True)
        small = Tree(base + "/small", options.files)
        problems += row("run", small, options.small, base)
        for name in ("rw", "ro", "session", "mcp", "http"):
            problems += row(name, small, options.each, base)
        if options.large:
            problems += row("run", Tree(base + "/large", options.many), options.large, base)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        shutil.rmtree(base, ignore_errors=True)  # nothing in it was written by a sandbox
    print("no secret was read" if not problems else f"{problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
