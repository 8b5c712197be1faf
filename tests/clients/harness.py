"""A real server for the tests of the clients, and the operations of its OpenAPI document."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAISSON = os.environ.get("CAISSON_BIN", str(ROOT / "build" / "caisson"))
PYTHON_CLIENT = ROOT / "clients" / "python"
TYPESCRIPT_CLIENT = ROOT / "clients" / "typescript"
START_TIMEOUT = 30.0
CONFIG = """
[templates.small]
profile = "dev"
memory = "256M"
"""


def skip(reason: str) -> None:
    """Exits with the status for a skipped test."""
    print(f"skipped: {reason}")
    sys.exit(77)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(directory: pathlib.Path) -> tuple[str, str]:
    """Creates a self-signed certificate for 127.0.0.1, and its key."""
    certificate, key = str(directory / "cert.pem"), str(directory / "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                    "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    certificate], check=True, capture_output=True, timeout=60)
    return certificate, key


class Server:
    """`caisson serve` with a private home, on a unix socket and on TCP. Its sandboxes end with it."""

    def __init__(self, *flags: str) -> None:
        # Short: a socket's path has at most 107 bytes.
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-clients-"))
        self.socket = str(self.home / "server" / "socket")
        self.port = free_port()
        self.workspace = pathlib.Path(tempfile.mkdtemp(prefix="caisson-project-"))
        config = self.home / "server.toml"
        config.write_text(CONFIG)
        self._command = [CAISSON, "serve", "--listen", f"127.0.0.1:{self.port}", "--allow-workspace", str(self.workspace),
                         "--config", str(config), *flags]
        self.environment = {**os.environ, "CAISSON_HOME": str(self.home), "CAISSON_PROGRAM": CAISSON}
        for name in ("CAISSON_URL", "CAISSON_TOKEN"):
            self.environment.pop(name, None)
        self.log = open(self.home / "log", "wb")
        self.start()

    def start(self) -> None:
        """Starts the server, also after stop()."""
        self.process = subprocess.Popen(self._command, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        self._wait()

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        """Stops the server with this signal. Its sandboxes and their commands keep running."""
        self.process.send_signal(signal_number)
        self.process.wait(20)

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline and self.process.poll() is None:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(self.socket) == 0:
                    return
            time.sleep(0.02)
        message = (self.home / "log").read_text(errors="replace")
        self.close()
        raise SystemExit(f"the server did not start: {message}")

    def token(self, name: str, *flags: str) -> str:
        made = subprocess.run([CAISSON, "token", "create", name, *flags], env=self.environment, capture_output=True,
                              text=True, check=True, timeout=30)
        return made.stdout.strip()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        remove_home(self.home, self.environment)
        shutil.rmtree(self.workspace, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def remove_home(home: pathlib.Path, environment: dict[str, str]) -> None:
    """Lets caisson remove the sandboxes, because payloads wrote their files; removes only the other files itself."""
    subprocess.run([CAISSON, "clean", "--all"], env=environment, capture_output=True, timeout=120, check=False)
    shutil.rmtree(home, ignore_errors=True)


class Operations:
    """The operations of an OpenAPI document, and those that requests called."""

    def __init__(self, document: dict) -> None:
        self._patterns = []
        self.all: set[str] = set()
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                # A literal segment has precedence over a parameter: /v1/policies/check.
                pattern = re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)))
                self._patterns.append((path.count("{"), method.upper(), pattern, operation["operationId"]))
                self.all.add(operation["operationId"])
        self._patterns.sort(key=lambda one: one[0])

    def find(self, method: str, path: str) -> str | None:
        for _, other, pattern, operation in self._patterns:
            if other == method and pattern.fullmatch(path):
                return operation
        return None

    def reached(self, requests: list[tuple[str, str, int]]) -> set[str]:
        """Counts only successful requests, because an error proves nothing, except for the documented 501."""
        found = {self.find(method, path) for method, path, status in requests if status < 300 or status == 501}
        return {one for one in found if one is not None}

    def missing(self, requests: list[tuple[str, str, int]]) -> list[str]:
        return sorted(self.all - self.reached(requests))


def run_script(command: list[str], environment: dict[str, str], timeout: float = 120) -> list[tuple[str, str, int]]:
    """Runs a scenario; its last line of output is a list of [method, path, status]."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return [(method, path, status) for method, path, status in json.loads(done.stdout.strip().splitlines()[-1])]


def servers_of(home: pathlib.Path) -> list[int]:
    """Returns the processes of `caisson serve` with this home's socket.

    A process that the server forks for its audit log looks the same for a moment. If there are several, it checks again.
    """
    deadline = time.monotonic() + 10
    found = look_for_servers(home)
    while len(found) > 1 and time.monotonic() < deadline:
        time.sleep(0.02)
        found = look_for_servers(home)
    return found


def check_stream_survives(client: subprocess.Popen[str], home: pathlib.Path) -> None:
    """Kills the server of this home while the client reads a stream; the client reads the rest from a new server."""
    try:
        assert client.stdout is not None
        first = client.stdout.readline()
        assert first == "one\n", first
        (server,) = servers_of(home)
        os.kill(server, signal.SIGKILL)
        rest = client.communicate("go\n", timeout=60)
        assert rest == ("two\n0\n", ""), rest
    finally:
        client.kill()
        for pid in servers_of(home):
            os.kill(pid, signal.SIGTERM)


def look_for_servers(home: pathlib.Path) -> list[int]:
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        if b"serve" in line and str(home / "server" / "socket").encode() in line:
            found.append(int(entry.parent.name))
    return found
