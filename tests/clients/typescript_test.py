#!/usr/bin/env python3
"""The TypeScript client against a real server: every operation of the OpenAPI document, and its generated types.

CAISSON_CLIENT_SUITE: a directory with the built client in dist/ (`make test-clients` makes it).
"""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

from harness import CAISSON, ROOT, TYPESCRIPT_CLIENT, Operations, Server, remove_home, run_script, servers_of, skip

HERE = pathlib.Path(__file__).resolve().parent
SUITE = pathlib.Path(os.environ.get("CAISSON_CLIENT_SUITE", str(ROOT / "build" / "clients" / "clients" / "typescript")))
CLIENT = SUITE / "dist" / "index.js"


def document_of(server: Server) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/openapi.json", timeout=30) as response:
        return response.read()


class TypeScriptClient(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="caisson-typescript-")
        self.addCleanup(shutil.rmtree, self.scratch)

    def test_ClientReachesEveryOperation(self) -> None:
        with Server() as server:
            command = ["node", str(HERE / "typescript_scenario.mjs"), str(CLIENT), f"http://127.0.0.1:{server.port}",
                       server.token("typescript"), str(server.workspace), self.scratch]
            requests = run_script(command, server.environment)
            self.assertEqual(Operations(json.loads(document_of(server))).missing(requests), [])

    def test_TypesAreThoseOfTheDocument(self) -> None:
        with Server() as server:
            document = document_of(server)
        made = subprocess.run(["node", str(TYPESCRIPT_CLIENT / "scripts" / "generate_types.mjs")], input=document,
                              capture_output=True, check=True, timeout=60)
        self.assertEqual(made.stdout.decode(), (TYPESCRIPT_CLIENT / "src" / "api.ts").read_text(),
                         "src/api.ts is not up to date: run scripts/generate_types.mjs")

    def test_FirstUseStartsOneServerForAllClients(self) -> None:
        home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-start-"))
        environment = {**os.environ, "CAISSON_HOME": str(home), "CAISSON_PROGRAM": CAISSON}
        code = (f"const {{ Client }} = await import({json.dumps(CLIENT.as_uri())});"
                "console.log((await new Client().whoami()).owner);")
        command = ["node", "--input-type=module", "-e", code]
        try:
            clients = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                       for _ in range(4)]
            for client in clients:
                self.assertEqual(client.communicate(timeout=60), ("true\n", ""))
            servers = servers_of(home)
            self.assertEqual(len(servers), 1, servers)
        finally:
            for pid in servers_of(home):
                os.kill(pid, 15)
            remove_home(home, environment)

    def test_FailedStartReportsTheServersMessage(self) -> None:
        program = pathlib.Path(self.scratch) / "broken"
        program.write_text("#!/bin/sh\necho this host has no kernel >&2\nexit 125\n")
        program.chmod(0o755)
        environment = {**os.environ, "CAISSON_HOME": self.scratch}
        for name, expected in ((str(program), "this host has no kernel"), ("/nowhere/caisson", "CAISSON_PROGRAM")):
            code = (f"const {{ Client }} = await import({json.dumps(CLIENT.as_uri())});"
                    f"await new Client({{ program: {json.dumps(name)} }}).health();")
            done = subprocess.run(["node", "--input-type=module", "-e", code], env=environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ConnectionFailedError", done.stderr)
            self.assertIn(expected, done.stderr)

    def test_PackageHasNoRuntimeDependency(self) -> None:
        package = json.loads((TYPESCRIPT_CLIENT / "package.json").read_text())
        self.assertNotIn("dependencies", package)
        self.assertNotIn("resolved", (TYPESCRIPT_CLIENT / "package-lock.json").read_text())


if __name__ == "__main__":
    if not os.access(CAISSON, os.X_OK):
        skip(f"{CAISSON} is not built")
    if shutil.which("node") is None:
        skip("node is not installed")
    if not CLIENT.exists():
        skip(f"{CLIENT} is not built; make test-clients builds it")
    unittest.main()
