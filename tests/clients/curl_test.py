#!/usr/bin/env python3
"""Calls every operation of the OpenAPI document with curl, because the API must be usable without a client library."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
from typing import Any

from harness import CAISSON, Operations, Server, skip

STREAM_SECONDS = 30


class Curl:
    """Sends requests as the owner, on the unix socket, or with a token."""

    def __init__(self, server: Server, scratch: pathlib.Path) -> None:
        self.server, self.scratch = server, scratch
        self.requests: list[tuple[str, str, int]] = []

    def _command(self, method: str, path: str, body: Any, token: str, flags: tuple[str, ...]) -> list[str]:
        command = ["curl", "-sS", "-N", "-X", method, "-o", str(self.scratch / "output"), *flags]
        if token:
            command += ["-H", f"Authorization: Bearer {token}", f"http://127.0.0.1:{self.server.port}{path}"]
        else:
            command += ["--unix-socket", self.server.socket, f"http://localhost{path}"]
        if body is not None:
            command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        (self.scratch / "output").unlink(missing_ok=True)
        return command

    def _received(self) -> bytes:
        output = self.scratch / "output"
        return output.read_bytes() if output.exists() else b""

    def call(self, method: str, path: str, body: Any = None, *, token: str = "",
             flags: tuple[str, ...] = ()) -> tuple[int, bytes]:
        command = self._command(method, path, body, token, ("-w", "%{http_code}", "--max-time", "60", *flags))
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.returncode} {done.stderr}")
        self.requests.append((method, path.split("?")[0], int(done.stdout)))
        return int(done.stdout), self._received()

    def stream(self, path: str, expected: bytes, flags: tuple[str, ...] = (), meanwhile: str = "") -> None:
        """Reads an endless stream until it has these bytes. meanwhile: a path to request at the same time."""
        heads = self.scratch / "heads"
        heads.unlink(missing_ok=True)
        command = self._command("GET", path, None, "", ("-D", str(heads), "--max-time", str(STREAM_SECONDS), *flags))
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as curl:
            while expected not in self._received() and curl.poll() is None:
                if meanwhile:
                    subprocess.run(["curl", "-sS", "-o", "/dev/null", "--unix-socket", self.server.socket,
                                    f"http://localhost{meanwhile}"], check=True, timeout=60)
                time.sleep(0.02)
            curl.terminate()
        if expected not in self._received():
            raise AssertionError(f"{path}: {expected!r} did not come: {heads.read_text()} {self._received()!r}")
        self.requests.append(("GET", path.split("?")[0], int(heads.read_text().split(" ")[1])))

    def json(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        status, data = self.call(method, path, body, **options)
        if not 200 <= status < 300:
            raise AssertionError(f"{method} {path}: {status} {data!r}")
        return json.loads(data) if data else None


class CurlClient(unittest.TestCase):
    def test_CurlReachesEveryOperation(self) -> None:
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-curl-"))
        self.addCleanup(shutil.rmtree, scratch)
        with Server() as server:
            self.curl = Curl(server, scratch)
            document = self.curl.json("GET", "/v1/openapi.json")
            made = self.curl.json("POST", "/v1/sandboxes", {"name": "curl", "workspace": str(server.workspace)})
            self.sandbox = f"/v1/sandboxes/{made['id']}"
            self.server_routes()
            self.command_routes()
            self.file_routes()
            self.history_routes(server)
            self.network_routes(server.token("curl"))
            self.curl.json("POST", f"{self.sandbox}/extend", {"sandbox_timeout": 100})
            self.assertEqual(self.curl.json("GET", self.sandbox)["sandbox_timeout"], 100)
            self.curl.json("DELETE", self.sandbox)
            self.assertEqual(Operations(document).missing(self.curl.requests), [])

    def server_routes(self) -> None:
        curl = self.curl
        self.assertEqual(curl.json("GET", "/healthz")["status"], "ok")
        self.assertEqual(curl.json("GET", "/readyz")["status"], "ready")
        self.assertIn(b"caisson", curl.call("GET", "/metrics")[1])
        self.assertTrue(curl.json("GET", "/v1/whoami")["owner"])
        for path in ("/v1/stats", "/v1/templates", "/v1/policies", "/v1/policies/dev", "/v1/audit?limit=3", "/v1/sandboxes"):
            self.assertIsInstance(curl.json("GET", path), dict)
        self.assertIn(curl.call("GET", "/v1/images")[0], (200, 501))
        self.assertTrue(curl.json("POST", "/v1/policies/check", {"policy": {}})["valid"])
        curl.stream("/v1/events?after=0", b"event: sandbox.created\n")
        curl.stream("/v1/audit/stream", b"event: audit\n", meanwhile="/v1/whoami")  # each request is a record

    def command_routes(self) -> None:
        curl, commands = self.curl, f"{self.sandbox}/commands"
        self.assertEqual(curl.json("POST", commands, {"command": "echo hi"})["stdout"], "hi\n")
        started = curl.json("POST", commands, {"command": "cat; sleep 100", "mode": "background", "keep_stdin": True})
        one = f"{commands}/{started['id']}"
        curl.json("POST", f"{one}/stdin", {"data": "typed\n"})
        self.assertTrue(curl.json("GET", one)["running"])
        curl.json("POST", f"{one}/signal", {"signal": "CONT"})
        curl.stream(f"{one}/output", b'"data":"typed\\n"')
        curl.json("DELETE", one)
        self.assertEqual(len(curl.json("GET", commands)["commands"]), 1)
        upgrade = ("-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13", "-H",
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "-i")
        # The accept value for this key in RFC 6455.
        curl.stream(f"{self.sandbox}/pty?command=true", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", upgrade)

    def file_routes(self) -> None:
        curl, files = self.curl, f"{self.sandbox}/files"
        local = curl.scratch / "local"
        local.write_bytes(b"content")
        self.assertEqual(curl.json("PUT", f"{files}/content?path=a", flags=("-T", str(local)))["size"], 7)
        self.assertEqual(curl.call("GET", f"{files}/content?path=a", flags=("-r", "0-2"))[1], b"con")
        curl.json("POST", f"{files}/mkdir", {"path": "d"})
        curl.json("POST", f"{files}/move", {"from": "a", "to": "d/a"})
        self.assertEqual(curl.json("GET", f"{files}/stat?path=d/a")["size"], 7)
        self.assertEqual([one["name"] for one in curl.json("GET", f"{files}?path=d")["files"]], ["a"])
        status, archive = curl.call("GET", f"{files}/archive?path=d")
        self.assertEqual(status, 200)
        local.write_bytes(archive)
        curl.json("PUT", f"{files}/archive?path=e", flags=("-T", str(local)))
        self.assertEqual(curl.call("GET", f"{files}/content?path=e/a")[1], b"content")
        curl.stream(f"{files}/watch", b"event: ready\n")
        curl.json("DELETE", f"{files}/content?path=e&recursive=true")

    def history_routes(self, server: Server) -> None:
        curl = self.curl
        self.assertEqual(curl.json("POST", f"{self.sandbox}/checkpoints", {"name": "one"})["name"], "one")
        self.assertEqual(curl.json("GET", f"{self.sandbox}/checkpoints")["checkpoints"][-1]["name"], "one")
        curl.json("POST", f"{self.sandbox}/restore", {"checkpoint": "one"})
        forked = curl.json("POST", f"{self.sandbox}/fork", {})
        curl.json("DELETE", f"/v1/sandboxes/{forked['id']}")
        self.assertIn("d/a", [one["path"] for one in curl.json("GET", f"{self.sandbox}/diff")["changes"]])
        planned = curl.json("POST", f"{self.sandbox}/commit", {"dry_run": True})
        curl.json("POST", f"{self.sandbox}/commit", {"expect": planned["digest"]})
        self.assertEqual((server.workspace / "d" / "a").read_bytes(), b"content")

    def network_routes(self, token: str) -> None:
        curl = self.curl
        self.assertEqual(curl.json("POST", f"{self.sandbox}/ports", {"port": 8000})["port"], 8000)
        self.assertEqual(len(curl.json("GET", f"{self.sandbox}/ports")["ports"]), 1)
        curl.json("DELETE", f"{self.sandbox}/ports/8000")
        change = {"action": "allow", "host": "example.org", "stop": True}
        self.assertEqual(curl.json("POST", f"{self.sandbox}/network", change)["allowed_hosts"], ["example.org"])
        self.assertEqual(curl.json("GET", f"{self.sandbox}/network")["mode"], "proxy")
        self.assertEqual(curl.json("GET", f"{self.sandbox}/credentials")["credentials"], [])
        status, data = curl.call("POST", "/v1/sandboxes", {"allowed_hosts": ["example.net"]}, token=token)
        self.assertEqual(status, 403, data)
        asked = json.loads(data)["approvals"][0]["id"]
        self.assertIn(asked, [one["id"] for one in curl.json("GET", "/v1/approvals")["approvals"]])
        self.assertEqual(curl.json("GET", f"/v1/approvals/{asked}")["state"], "pending")
        self.assertEqual(curl.json("POST", f"/v1/approvals/{asked}", {"decision": "deny"})["state"], "denied")


if __name__ == "__main__":
    if not os.access(CAISSON, os.X_OK):
        skip(f"{CAISSON} is not built")
    if shutil.which("curl") is None:
        skip("curl is not installed")
    unittest.main()
