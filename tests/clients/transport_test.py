#!/usr/bin/env python3
"""Tests the clients with peers that behave as a real server rarely does: slow, disconnected, silent, in pieces.

The peer is a small HTTP server in this file. Each case runs with the Python client (threads, asyncio) and the TypeScript
client (fetch, node:http).
"""
from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from harness import PYTHON_CLIENT, ROOT

sys.path[:0] = [str(PYTHON_CLIENT / "src"), str(PYTHON_CLIENT / "tools")]
import caisson_client  # noqa: E402
import make_sync  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SUITE = pathlib.Path(os.environ.get("CAISSON_CLIENT_SUITE", str(ROOT / "build" / "clients" / "clients" / "typescript")))
CLIENT = SUITE / "dist" / "index.js"
CALLER = json.dumps({"id": "1", "name": "peer", "owner": False, "scopes": "read", "size": 7}).encode()


class Peer:
    """Serves one case: calls `handle(self, connection, number)` for each connection."""

    def __init__(self, handle, path: str | None) -> None:
        self._handle = handle
        self.requests: list[str] = []
        self.heads: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self._listener.bind(path or ("127.0.0.1", 0))
        self._listener.listen()
        self.url = f"unix:{path}" if path else f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        number = 0
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            number += 1
            threading.Thread(target=self._serve_one, args=(connection, number), daemon=True).start()

    def _serve_one(self, connection: socket.socket, number: int) -> None:
        connection.settimeout(20)
        try:
            self._handle(self, connection, number)
        except OSError:
            pass
        finally:
            connection.close()

    def read_request(self, connection: socket.socket) -> str:
        """Returns the first line of the next request; also reads the body if it has a length."""
        data = b""
        while b"\r\n\r\n" not in data:
            received = connection.recv(4096)
            if not received:
                raise OSError("closed")
            data += received
        head, _, body = data.partition(b"\r\n\r\n")
        text = head.decode()
        length = 0
        for line in text.split("\r\n"):
            if line.lower().startswith("content-length:"):
                length = int(line.split(":")[1])
        while len(body) < length:
            body += connection.recv(4096)
        self.heads.append(text)
        self.requests.append(text.split("\r\n")[0])
        return self.requests[-1]

    def close(self) -> None:
        self._listener.close()


def respond(connection: socket.socket, body: bytes, status: str = "200 OK", headers: str = "") -> None:
    connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)


def single_bytes(peer: Peer, connection: socket.socket, _: int) -> None:
    peer.read_request(connection)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (CALLER[:7], CALLER[7:]))
    for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n":
        connection.sendall(bytes([byte]))


def close_after_first(peer: Peer, connection: socket.socket, number: int) -> None:
    """Closes the first connection at its second request, like a server that closes an idle connection at that moment."""
    peer.read_request(connection)
    respond(connection, CALLER)
    peer.read_request(connection)
    if number > 1:
        respond(connection, CALLER)


def silent(peer: Peer, connection: socket.socket, _: int) -> None:
    peer.read_request(connection)
    connection.recv(1)


def not_http(_peer: Peer, connection: socket.socket, _: int) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
    connection.recv(4096)


def cut_body(peer: Peer, connection: socket.socket, _: int) -> None:
    peer.read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")


def refused_upload(peer: Peer, connection: socket.socket, _: int) -> None:
    """Rejects a request after its head, as the server does. Reads on for some time, so that a reset does not discard the
    response."""
    peer.read_request(connection)
    problem = json.dumps({"type": "", "title": "", "status": 413, "code": "too_large", "reason": "too large"}).encode()
    respond(connection, problem, "413 Content Too Large", "Connection: close\r\n")
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536):
        pass


def event(kind: str, id: str, value: object) -> bytes:
    return f"event: {kind}\nid: {id}\ndata: {json.dumps(value)}\n\n".encode()


def resume(peer: Peer, connection: socket.socket, number: int, end: bytes = b"") -> None:
    """Sends a stream that breaks twice, the second time in the middle of an event."""
    peer.read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    def send(data: bytes) -> None:
        connection.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    output = [event("stdout", f"{end}-0", {"offset": end - 1, "data": letter, "encoding": "utf-8"})
              for end, letter in enumerate("abc", 1)]
    if number == 1:
        send(event("started", "0-0", {"command_id": "c1"}) + b": a comment\n\n" + output[0])
        connection.sendall(end)
    elif number == 2:
        send(output[1] + output[2][:20])
        connection.sendall(end)
    else:
        send(output[2] + event("exit", "3-0", {"id": "c1", "args": [], "started": 1, "running": False, "exit_code": 5}))
        connection.sendall(b"0\r\n\r\n")


def resume_ended(peer: Peer, connection: socket.socket, number: int) -> None:
    """The same, but with a complete body, as when a server is stopped."""
    resume(peer, connection, number, b"0\r\n\r\n")


def ended_events(peer: Peer, connection: socket.socket, _: int) -> None:
    """Ends a stream that should be endless."""
    peer.read_request(connection)
    data = event("sandbox.created", "1", {"id": 1, "type": "sandbox.created"})
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(data), data))


def ended_terminal(peer: Peer, connection: socket.socket, _: int) -> None:
    """Disconnects without a result, like a server that is killed."""
    accept_socket(peer, connection)
    connection.sendall(b"\x82\x02ab")


def accept_socket(peer: Peer, connection: socket.socket) -> None:
    peer.read_request(connection)
    key = next(line.split(": ")[1] for line in peer.heads[-1].split("\r\n") if line.lower().startswith("sec-websocket-key"))
    accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
    connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())


def terminal(peer: Peer, connection: socket.socket, _: int) -> None:
    """Sends fragments, a ping between them, and a 16-bit length, in single bytes."""
    accept_socket(peer, connection)
    long = b"x" * 300
    frames = (b"\x02\x02ab" + b"\x89\x01p" + b"\x80\x01c" + b"\x82\x7e" + len(long).to_bytes(2, "big") + long +
              b"\x81\x0f" + b'{"exit_code":0}' + b"\x88\x02\x03\xe8")
    for begin in range(0, len(frames), 5):
        connection.sendall(frames[begin:begin + 5])
    while connection.recv(4096):
        pass


# Name, peer, expected result of every client, and number of requests.
CASES = [
    ("single_bytes", single_bytes, "peer", 1),
    ("idle_get", close_after_first, "peer", 3),
    ("idle_put", close_after_first, 7, 3),
    ("idle_post", close_after_first, "ConnectionFailedError", 2),
    ("silent", silent, "RequestTimeoutError", 1),
    ("not_http", not_http, "ProtocolError", 0),
    ("cut_body", cut_body, "ConnectionFailedError", 1),
    ("refused_upload", refused_upload, "InvalidRequestError", 1),
    ("resume", resume, ["abc", 5], 3),
    ("resume_ended", resume_ended, ["abc", 5], 3),
    ("ended_events", ended_events, "ConnectionFailedError", 1),
    ("ended_terminal", ended_terminal, "ConnectionFailedError", 1),
    ("terminal", terminal, ["abc" + "x" * 300, {"exit_code": 0}], 1),
]


class Transport(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-transport-"))
        self.addCleanup(shutil.rmtree, self.scratch)
        for name in ("CAISSON_URL", "CAISSON_TOKEN"):
            os.environ.pop(name, None)

    def run_cases(self, command: list[str], *rest: str) -> None:
        for name, handle, expected, count in CASES:
            for path in (None, str(self.scratch / f"{name}.socket")):
                if path is None and rest and name.startswith("idle_"):
                    continue  # fetch selects the connection itself
                with self.subTest(case=name, over="unix" if path else "tcp"):
                    self.run_case([*command, name], handle, path, expected, count, *rest)

    def run_case(self, command: list[str], handle, path: str | None, expected: object, count: int, *rest: str) -> None:
        peer = Peer(handle, path)
        target = self.scratch / "cut"  # of a failed download
        target.write_text("before")
        try:
            environment = {**os.environ, "PYTHONPATH": str(PYTHON_CLIENT / "src")}
            done = subprocess.run([*command, peer.url, str(self.scratch), *rest], env=environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done)
            outcome = json.loads(done.stdout)
            self.assertEqual(outcome, expected)
            if count:
                self.assertEqual(len(peer.requests), count, peer.requests)
            if handle is cut_body:
                self.assertEqual(target.read_text(), "before")
                self.assertEqual([one.name for one in self.scratch.glob("cut*") if one.suffix != ".socket"], ["cut"])
            if handle in (resume, resume_ended):
                self.assertIn("/v1/sandboxes/a%20b%2Fc/commands/c1/output", peer.requests[1])
                self.assertRegex(peer.heads[2], r"(?i)last-event-id: 2-0")
        finally:
            peer.close()
            if path:
                os.unlink(path)

    def test_AsyncioClient(self) -> None:
        self.run_cases([sys.executable, "-W", "error", str(HERE / "transport_probe.py")])

    def test_SyncClient(self) -> None:
        script = self.scratch / "probe.py"
        text = make_sync.convert((HERE / "transport_probe.py").read_text(), "transport_probe.py")
        script.write_text(text.replace("asyncio.run(main())", "main()"))
        self.run_cases([sys.executable, "-W", "error", str(script)])

    def test_TypeScriptClient(self) -> None:
        if shutil.which("node") is None or not CLIENT.exists():
            self.skipTest("the TypeScript client is not built; make test-clients builds it")
        self.run_cases(["node", str(HERE / "transport_probe.mjs")], str(CLIENT))

    def test_CancelledReadsLoseNothing(self) -> None:
        """Cancels reads at all positions of a chunk: the peer sends single bytes, and a read is shorter than an event."""
        def handle(peer: Peer, connection: socket.socket, _: int) -> None:
            peer.read_request(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            events = [event("started", "0-0", {"command_id": "c1"})]
            events += [event("stdout", f"{end}-0", {"offset": end - 1, "data": letter, "encoding": "utf-8"})
                       for end, letter in enumerate("abc", 1)]
            events.append(event("exit", "3-0", {"id": "c1", "args": [], "started": 1, "running": False, "exit_code": 5}))
            data = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in events)
            for byte in b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data + b"0\r\n\r\n":
                connection.sendall(bytes([byte]))
                time.sleep(0.002)

        async def read(url: str) -> tuple[str, int | None, int]:
            async with caisson_client.AsyncClient(url, start=False) as client:
                sandbox = caisson_client.AsyncSandbox(client, caisson_client.SandboxInfo("1", "", {}, "running", 0, 0))
                stream = await sandbox.stream("anything")
                text, cancelled = "", 0
                while True:
                    try:
                        text += (await asyncio.wait_for(stream.__anext__(), 0.005)).text
                    except asyncio.TimeoutError:
                        cancelled += 1
                    except StopAsyncIteration:
                        return text, stream.info.exit_code if stream.info else None, cancelled

        peer = Peer(handle, None)
        self.addCleanup(peer.close)
        text, code, cancelled = asyncio.run(asyncio.wait_for(read(peer.url), 60))
        self.assertEqual((text, code), ("abc", 5))
        self.assertGreater(cancelled, 10)
        self.assertEqual(len(peer.requests), 1, peer.requests)

    def test_TokenIsNotSentUnencryptedToAnotherMachine(self) -> None:
        refused = ["http://192.0.2.1:7080", "http://127.example.org", "http://127.0.0.1.example.org:7080", "http://127.0.0.example",
                   "http://localhost.example.org", "http://[2001:db8::1]:7080", "http://128.0.0.1", "http://1127.0.0.1.example"]
        accepted = ["https://192.0.2.1:7080", "https://127.example.org", "http://127.0.0.1:7080", "http://127.8.9.10",
                    "http://localhost:7080", "http://[::1]:7080"]
        for url in refused:
            with self.subTest(url=url), self.assertRaisesRegex(caisson_client.CaissonError, "https"):
                caisson_client.Client(url, token="secret")
        for url in accepted:
            caisson_client.Client(url, token="secret")
        if shutil.which("node") is None or not CLIENT.exists():
            return
        code = (f"const {{ Client }} = await import({json.dumps(CLIENT.as_uri())});"
                f"console.log(JSON.stringify({json.dumps(refused + accepted)}.filter((url) => {{"
                "  try { new Client({ url, token: 'secret' }); return false; }"
                "  catch (e) { return e.message.includes('use https'); }"
                "})));")
        done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(json.loads(done.stdout), refused)

    def test_LineBreaksCannotAddHeaders(self) -> None:
        peer = Peer(single_bytes, None)
        self.addCleanup(peer.close)
        with caisson_client.Client(peer.url, token="a\r\nX-Evil: 1") as client:
            with self.assertRaises(caisson_client.CaissonError):
                client.whoami()
        self.assertEqual(peer.requests, [])


if __name__ == "__main__":
    unittest.main()
