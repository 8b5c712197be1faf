"""The interfaces of caisson through which a tree is read. Each returns the canaries that it shows."""
import base64
import http.client
import io
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.parse

import flags

CANARY = re.compile(rb"canary[0-9]{6}x[0-9]{3}")
NOTICE = re.compile("caisson: (hidden|not shown|shown without|denied, but not|warning|files that the host would execute)")
TIMEOUT = 60  # seconds, for one command or one response
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
# Standard input: two lists of paths, each base64 with NULs. Reads all of the first list and what it finds, then writes at
# each path of the second list, as if nothing were there, and reads again.
PAYLOAD = r"""cd /workspace
IFS= read -r all; IFS= read -r ours
printf %s "$all" | base64 -d > /tmp/all
printf %s "$ours" | base64 -d > /tmp/ours
search() {
  grep -RhaoE 'canary[0-9]{6}x[0-9]{3}' . "$@"
  xargs -0 -a /tmp/all cat -- | grep -aoE 'canary[0-9]{6}x[0-9]{3}'
}
{
  chmod -R u+rwX . "$@"
  search "$@" > /tmp/seen
  xargs -0 -r -a /tmp/ours sh -c 'for path; do mkdir -p -- "${path%/*}"; echo mine >> "$path"; done' sh
  search "$@" >> /tmp/seen
} 2>/dev/null
sort -u /tmp/seen"""


class Refused(Exception):
    """A command that the program did not carry out."""


def found(data):
    return {one.decode() for one in CANARY.findall(data)}


def inside(tree):
    """All paths of the tree, as they are in a sandbox: in the workspace and at their place on the host."""
    named = tree.read_only + tree.read_write
    paths = [b"/workspace/" + path[2:] for path in tree.nodes if path.startswith(b"w/")]
    return paths + [tree.full(path) for path in tree.nodes if any(path.startswith(one + b"/") for one in named)]


def payload(tree, writes=True):
    """Returns the command line and the standard input of the payload. `writes`: into the workspace, which is an overlay."""
    named = [os.fsdecode(tree.full(path)) for path in tree.read_only + tree.read_write]
    ours = [b"/workspace/" + path[2:] for path, node in tree.nodes.items() if writes and path.startswith(b"w/")
            and node.kind != "directory" and not any(path.startswith(one + b"/") for one in tree.read_write)]
    lists = [b"".join(path + b"\0" for path in some) for some in (inside(tree), ours)]
    return ["sh", "-c", PAYLOAD, "sh", *named], b"".join(base64.b64encode(one) + b"\n" for one in lists)


class Programs:
    """The tested programs, with a CAISSON_HOME of their own in `scratch`."""

    def __init__(self, caisson, scratch):
        self.caisson = caisson
        self.scratch = scratch
        self.environment = {**os.environ, "CAISSON_HOME": os.path.join(scratch, "home"), "CAISSON_LOG": "off"}
        self.server = None

    def call(self, *arguments, data=b"", accept=(0,)):
        done = subprocess.run([self.caisson, *arguments], input=data, env=self.environment, cwd=self.scratch,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
        if done.returncode not in accept:
            lines = done.stderr.decode(errors="replace").splitlines()
            raise Refused(f"exit status {done.returncode}: " + "; ".join(line for line in lines if not NOTICE.match(line))[:600])
        return done.stdout

    def close(self):
        if self.server:
            self.server.close()


def run(programs, tree, mode):
    command, data = payload(tree, mode == "overlay")
    denied = flags.for_direct_writes(tree) if mode == "rw" else tree.denied
    workspace = os.fsdecode(tree.full(b"w")) + ":" + mode
    return found(programs.call("run", "--workspace", workspace, *flags.arguments(tree, denied), "--", *command, data=data))


class Session:
    """`caisson session`: read and cp before a command, and exec."""

    def __init__(self, programs, tree):
        self.programs, self.tree = programs, tree
        workspace = os.fsdecode(tree.full(b"w"))
        made = programs.call("session", "create", "--workspace", workspace, *flags.arguments(tree, tree.denied))
        self.id = made.decode().strip()

    def read(self, paths):
        seen = set()
        for path in paths:
            seen |= found(self.programs.call("session", "read", self.id, os.fsdecode(path), accept=(0, 1, 125)))
        return seen

    def copy(self):
        """What `session cp` of the whole workspace brings to the host; links are not followed."""
        there = os.path.join(self.programs.scratch, "copied")
        os.mkdir(there)
        self.programs.call("session", "cp", f"{self.id}:.", there, accept=(0, 1))
        seen = set()
        for directory, names, files in os.walk(there):
            for name in names + files:
                path = os.path.join(directory, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    os.chmod(path, 0o600)
                    with open(path, "rb") as file:
                        seen |= found(file.read())
                elif not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(there)
        return seen

    def execute(self):
        command, data = payload(self.tree)
        return found(self.programs.call("session", "exec", self.id, "--", *command, data=data))

    def export(self):
        """What an archive of the session's changes contains."""
        return found(self.programs.call("session", "export", "--format", "tar", self.id, accept=(0, 1)))

    def close(self):
        self.programs.call("session", "destroy", self.id)


class Mcp:
    """`caisson mcp` over standard input and output."""

    def __init__(self, programs, tree):
        self.tree, self.ids, self.buffer = tree, 0, b""
        workspace = os.fsdecode(tree.full(b"w"))
        self.process = subprocess.Popen([programs.caisson, "mcp", "--workspace", workspace, *flags.arguments(tree, tree.denied)],
                                        env=programs.environment, cwd=programs.scratch, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self.id = self.tool("sandbox_create")["sandbox_id"]
        except Refused:
            self.close()
            raise

    def tool(self, name, fail=True, **arguments):
        self.ids += 1
        message = {"jsonrpc": "2.0", "id": self.ids, "method": "tools/call",
                   "params": {"name": name, "arguments": arguments, "_meta": META}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.answer(self.ids)
        if "error" in answer or answer["result"].get("isError"):
            if fail:
                raise Refused(json.dumps(answer)[:600])
            return {}
        return answer["result"]["structuredContent"]

    def answer(self, number):
        deadline = time.monotonic() + TIMEOUT
        while True:
            line, newline, rest = self.buffer.partition(b"\n")
            if newline:
                self.buffer = rest
                message = json.loads(line)
                if message.get("id") == number:
                    return message
                continue
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Refused("no answer")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise Refused("the server ended")
            self.buffer += piece

    def read(self, paths):
        seen = set()
        for path in paths:
            answer = self.tool("sandbox_read_file", fail=False, sandbox_id=self.id, path=base64.b64encode(path).decode(),
                               path_encoding="base64")
            text = answer.get("content", "")
            seen |= found(base64.b64decode(text) if answer.get("encoding") == "base64" else text.encode())
        return seen

    def execute(self):
        command, data = payload(self.tree)
        answer = self.tool("sandbox_execute", sandbox_id=self.id, command=command[0], args=command[1:], stdin=data.decode())
        if answer.get("exit_code") != 0:
            raise Refused(json.dumps(answer)[:600])
        return found(answer["stdout"].encode())

    def difference(self):
        """What a model sees of the files that it changed."""
        return found(json.dumps(self.tool("sandbox_diff", sandbox_id=self.id, patch=True, max_bytes=1 << 20)).encode())

    def close(self):
        self.process.stdin.close()
        self.process.wait(TIMEOUT)
        self.process.stdout.close()


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=TIMEOUT)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT)
        self.sock.connect(self.path)


class Server:
    """`caisson serve` on a unix socket, for all trees."""

    def __init__(self, programs):
        self.path = os.path.join(programs.scratch, "api")
        self.process = subprocess.Popen([programs.caisson, "serve", "--listen", "none", "--socket", self.path],
                                        env=programs.environment, cwd=programs.scratch, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + TIMEOUT
        while not os.path.exists(self.path):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Refused("the server did not start")
            time.sleep(0.01)
        self.connection = Connection(self.path)

    def request(self, method, path, body=None, accept=(200, 201, 204)):
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status not in accept:
            raise Refused(f"{method} {path}: {response.status} {answer[:600]}")
        return answer if response.status < 400 else b""

    def close(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait(TIMEOUT)


class Http:
    """A sandbox of the HTTP API: file contents and an archive before a command, and a command."""

    def __init__(self, programs, tree, denied):
        programs.server = programs.server or Server(programs)
        self.server, self.tree = programs.server, tree
        policy = {"extends": "dev", "filesystem": {
            "workspace": {"show_files": [os.fsdecode(b"/workspace/" + path[2:]) for path in tree.shown]},
            "read_only": [os.fsdecode(tree.full(path)) for path in tree.read_only],
            "read_write": [os.fsdecode(tree.full(path)) for path in tree.read_write],
            "denied": [os.fsdecode(path if path.startswith(b"/") else b"/workspace/" + path) for path in denied]}}
        body = {"workspace": os.fsdecode(tree.full(b"w")), "policy": policy}
        self.id = json.loads(self.server.request("POST", "/v1/sandboxes", body))["id"]

    def read(self, paths):
        seen = set()
        for path in paths:
            where = f"/v1/sandboxes/{self.id}/files/content?path={urllib.parse.quote(path, safe='')}"
            seen |= found(self.server.request("GET", where, accept=(200, 400, 403, 404)))
        return seen

    def archive(self):
        data = self.server.request("GET", f"/v1/sandboxes/{self.id}/files/archive?path=.")
        seen = set()
        with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as archive:
            for member in archive:
                if member.isreg():
                    seen |= found(archive.extractfile(member).read())
        return seen

    def execute(self):
        command, data = payload(self.tree)
        answer = json.loads(self.server.request("POST", f"/v1/sandboxes/{self.id}/commands", {
            "args": command, "stdin": data.decode()}))
        return found(json.dumps(answer).encode())

    def difference(self):
        """What the patch of the sandbox's changes contains."""
        return found(self.server.request("GET", f"/v1/sandboxes/{self.id}/diff?patch=true"))

    def close(self):
        self.server.request("DELETE", f"/v1/sandboxes/{self.id}")
