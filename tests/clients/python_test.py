#!/usr/bin/env python3
"""The Python client against a real server: every operation of the OpenAPI document, for threads and for asyncio."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

from harness import CAISSON, PYTHON_CLIENT, Operations, Server, remove_home, run_script, servers_of, skip

sys.path[:0] = [str(PYTHON_CLIENT / "src"), str(PYTHON_CLIENT / "tools")]
import caisson_client  # noqa: E402
import make_sync  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


class PythonClient(unittest.TestCase):
    def setUp(self) -> None:
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-python-"))
        self.addCleanup(shutil.rmtree, self.scratch)

    def run_scenario(self, script: pathlib.Path) -> None:
        with Server() as server:
            arguments = [f"http://127.0.0.1:{server.port}", server.token("python"), str(server.workspace), str(self.scratch)]
            environment = {**server.environment, "PYTHONPATH": str(PYTHON_CLIENT / "src")}
            requests = run_script([sys.executable, "-W", "error", str(script), *arguments], environment)
            document = document_of(server)
            self.assertEqual(Operations(document).missing(requests), [])

    def test_AsyncioClientReachesEveryOperation(self) -> None:
        self.run_scenario(HERE / "python_scenario.py")

    def test_SyncClientReachesEveryOperation(self) -> None:
        text = make_sync.convert((HERE / "python_scenario.py").read_text(), "python_scenario.py")
        script = self.scratch / "sync_scenario.py"
        script.write_text(text.replace("asyncio.run(main())", "main()"))
        self.run_scenario(script)

    def test_ModelsHaveEveryMemberOfTheDocument(self) -> None:
        names = {"Sandbox": "SandboxInfo", "Command": "CommandInfo", "File": "FileInfo", "Network": "NetworkInfo"}
        with Server() as server:
            schemas = document_of(server)["components"]["schemas"]
        checked = 0
        for schema, value in schemas.items():
            model = getattr(caisson_client, names.get(schema, schema), None)
            if model is None or not dataclasses.is_dataclass(model):
                continue
            checked += 1
            ours = {one.name for one in dataclasses.fields(model)}
            theirs = {one for one in value["properties"] if not one.endswith("_encoding")} | (ours & set(value["properties"]))
            self.assertEqual(theirs - ours, set(), schema)
        self.assertGreaterEqual(checked, 12)

    def test_FirstUseStartsOneServerForAllClients(self) -> None:
        home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-start-"))
        environment = {**os.environ, "CAISSON_HOME": str(home), "CAISSON_PROGRAM": CAISSON,
                       "PYTHONPATH": str(PYTHON_CLIENT / "src")}
        code = "import caisson_client\nwith caisson_client.Client() as c: print(c.ready(), c.whoami().owner)"
        try:
            clients = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True) for _ in range(4)]
            for client in clients:
                self.assertEqual(client.communicate(timeout=60), ("True True\n", ""))
            servers = servers_of(home)
            self.assertEqual(len(servers), 1, servers)
        finally:
            for pid in servers_of(home):
                os.kill(pid, 15)
            remove_home(home, environment)

    def test_FailedStartReportsTheServersMessage(self) -> None:
        home = tempfile.mkdtemp(prefix="caisson-start-")
        self.addCleanup(shutil.rmtree, home)
        program = self.scratch / "broken"
        program.write_text("#!/bin/sh\necho this host has no kernel >&2\nexit 125\n")
        program.chmod(0o755)
        environment = {**os.environ, "CAISSON_HOME": home, "PYTHONPATH": str(PYTHON_CLIENT / "src")}
        code = "import caisson_client, sys; caisson_client.Client(program=sys.argv[1]).health()"
        for name, expected in ((str(program), "this host has no kernel"), ("/nowhere/caisson", "CAISSON_PROGRAM")):
            done = subprocess.run([sys.executable, "-c", code, name], env=environment, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("ConnectionFailedError", done.stderr)
            self.assertIn(expected, done.stderr)

    def test_WheelBuildsOfflineAndIsComplete(self) -> None:
        subprocess.run([sys.executable, str(PYTHON_CLIENT / "tools" / "build_wheel.py"), str(self.scratch)], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        (wheel,) = self.scratch.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            self.assertIn("caisson_client/py.typed", archive.namelist())
        code = "import caisson_client; print(caisson_client.__file__)"
        done = subprocess.run([sys.executable, "-I", "-W", "error", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); {code}"],
                              capture_output=True, text=True, check=True, timeout=60)
        self.assertIn(wheel.name, done.stdout)

    def test_SyncModulesAreMadeFromTheAsyncOnes(self) -> None:
        subprocess.run([sys.executable, str(PYTHON_CLIENT / "tools" / "make_sync.py"), "--check"], check=True, timeout=60)
        subprocess.run([sys.executable, "-W", "error", "-m", "compileall", "-q", "-f", str(PYTHON_CLIENT / "src")], check=True,
                       timeout=60)


def document_of(server: Server) -> dict:
    with caisson_client.Client(f"unix:{server.socket}") as client:
        return client.openapi()


if __name__ == "__main__":
    if not os.access(CAISSON, os.X_OK):
        skip(f"{CAISSON} is not built")
    unittest.main()
