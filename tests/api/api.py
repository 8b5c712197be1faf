"""A real caisson-server for the tests, and a client that uses only the standard library."""
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

CAISSON = os.environ.get("CAISSON_BIN", os.path.join(os.path.dirname(__file__), "../../build/caisson"))


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:500]!r}"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Client:
    """A caller. Without a token it is the owner, on the unix socket."""

    def __init__(self, server, token=None, unix=None):
        self.server, self.token = server, token
        self.unix = token is None if unix is None else unix

    def connection(self, timeout=60):
        if self.unix:
            return UnixConnection(self.server.socket, timeout)
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=timeout)

    def headers(self, extra=None):
        headers = dict(extra or {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def open(self, method, path, body=None, headers=None, timeout=60, query=None):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = self.headers(headers)
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        connection = self.connection(timeout)
        try:
            connection.request(method, path, body=body, headers=headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # rejected before the whole body was sent
        response = connection.getresponse()
        response.connection = connection  # keeps it open
        return response

    def call(self, method, path, body=None, headers=None, timeout=60, query=None):
        response = self.open(method, path, body, headers, timeout, query)
        data = response.read()
        response.connection.close()
        return Reply(response.status, response.headers, data)

    def create(self, **fields):
        reply = self.call("POST", "/v1/sandboxes", fields)
        if reply.status != 201:
            raise AssertionError(f"create: {reply}")
        return reply.json["id"]

    def run(self, sandbox, command, **fields):
        fields["args" if isinstance(command, list) else "command"] = command
        return self.call("POST", f"/v1/sandboxes/{sandbox}/commands", fields, timeout=90)

    def put(self, sandbox, path, data, **query):
        return self.call("PUT", f"/v1/sandboxes/{sandbox}/files/content", data, query={"path": path, **query})

    def get(self, sandbox, path, headers=None):
        return self.call("GET", f"/v1/sandboxes/{sandbox}/files/content", query={"path": path}, headers=headers)


def events(response):
    """Server-sent events as (type, id, data)."""
    kind = ident = None
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("id: "):
            ident = line[4:]
        elif line.startswith("data: "):
            yield kind, ident, json.loads(line[6:])


class Server:
    """`caisson serve` with a private home. `program`: replaces caisson-server, for example with a modified one."""

    def __init__(self, *options, config=None, home=None, program=None, environment=None):
        # A short path: the path of a unix socket has at most 107 bytes.
        self.home = home or tempfile.mkdtemp(prefix="ca-", dir="/tmp")
        self.environment = dict(os.environ, CAISSON_HOME=self.home, **(environment or {}))
        self.program = program
        self.socket = os.path.join(self.home, "server/socket")
        self.options = list(options)
        if config:
            path = os.path.join(self.home, "server.toml")
            with open(path, "w") as file:
                file.write(config)
            self.options += ["--config", path]
        self.port = None
        self.start()

    def start(self):
        listen = f"127.0.0.1:{self.port or 0}"
        log = os.path.join(self.home, "log")
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                [CAISSON, "serve", "--listen", listen, *self.options], executable=self.program, env=self.environment,
                stderr=file, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with open(log) as file:
                for line in file:
                    if '"listening"' in line:
                        addresses = json.loads(line)["addresses"]
                        self.port = int(next(a for a in addresses if a.startswith("127.")).rsplit(":", 1)[1])
                        return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        text = read_text(log)
        self.close()
        raise AssertionError("the server did not start: " + text)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(30)

    def caisson(self, *words):
        return subprocess.run([CAISSON, *words], env=self.environment, capture_output=True, text=True, timeout=60)

    def token(self, name, *options):
        done = self.caisson("token", "create", name, *options)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout.strip()

    def client(self, name, *options):
        return Client(self, self.token(name, *options))

    def owner(self):
        return Client(self)

    def raw(self, timeout=20):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        return sock

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()
        self.caisson("clean", "--all")
        shutil.rmtree(self.home, ignore_errors=True)


def read_text(path):
    """Returns the content of a file of /proc; empty if the process has exited or belongs to another user."""
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def processes_of(home):
    """Returns the processes that use this home: by their environment, their mounts or their command line."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        if any(home in read_text(f"/proc/{entry}/{name}") for name in ("environ", "mountinfo", "cmdline")):
            line = read_text(f"/proc/{entry}/cmdline").replace("\0", " ")
            if line:  # not a zombie
                found[int(entry)] = line
    return found


def cgroups_of(ids):
    """Returns the control groups that are named after one of these sandboxes."""
    found = []
    for directory, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(directory, name) for name in names if any(one in name for one in ids)]
    return found


def wait_until(condition, seconds=30):
    """Returns the first true value of condition(), or its last value after this many seconds."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(0.05)


def receive_all(sock):
    data = b""
    while True:
        try:
            piece = sock.recv(65536)
        except (ConnectionResetError, socket.timeout):
            break
        if not piece:
            break
        data += piece
    return data


class ApiTest(unittest.TestCase):
    """One server for all tests of a class."""
    options = []
    config = None

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.options, config=cls.config)
        cls.owner = cls.server.owner()
        cls.alice = cls.server.client("alice")
        cls.bob = cls.server.client("bob")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def assertStatus(self, reply, status, code=None):
        self.assertEqual(reply.status, status, reply)
        if code:
            self.assertEqual(reply.json["code"], code, reply)
        return reply


def enter_mount_namespace():
    """Starts this test again in a mount namespace; for an ordinary user also in a user namespace, as root."""
    mark = "CAISSON_TEST_IN_NAMESPACE"
    if os.environ.get(mark):
        return
    flags = ["-m"] if os.getuid() == 0 else ["-U", "-r", "-m"]
    os.environ[mark] = "1"
    os.execvp("unshare", ["unshare", *flags, "--propagation", "private", sys.executable, *sys.argv])


def main():
    unittest.main(verbosity=2, warnings="ignore", argv=sys.argv)
