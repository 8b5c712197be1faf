#!/usr/bin/env python3
"""The Python client with a real server: every operation of the OpenAPI document, for threads and for asyncio."""
from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import inspect
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

from harness import CAISSON, PYTHON_CLIENT, Operations, Server, check_stream_survives, make_certificate, remove_home, run_script, servers_of, skip

sys.path[:0] = [str(PYTHON_CLIENT / "src"), str(PYTHON_CLIENT / "tools")]
import caisson_client  # noqa: E402
import make_sync  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


# Prints the output of a command; after the first line, creates the file that the command waits for.
SURVIVOR = """
from caisson_client import Sandbox
with Sandbox.create() as sandbox:
    stream = sandbox.stream("echo one; until [ -e go ]; do sleep 0.05; done; echo two")
    for piece in stream:
        print(piece.text, end="", flush=True)
        if piece.text == "one\\n":
            input()
            sandbox.files.write("go", "")
    print(stream.info.exit_code)
"""


RESTARTED = "echo 1; echo 2; until [ -e go ]; do sleep 0.05; done; echo 3; echo 4; exit 7"


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

    def test_TlsCertificateIsVerified(self) -> None:
        certificate, key = make_certificate(self.scratch)
        trusted = ssl.create_default_context(cafile=certificate)
        with Server("--tls-cert", certificate, "--tls-key", key) as server:
            url, token = f"https://127.0.0.1:{server.port}", server.token("tls")
            with caisson_client.Client(url, token=token, tls=trusted) as client:
                self.assertEqual(client.whoami().name, "tls")
            with caisson_client.Client(url, token=token) as client, self.assertRaises(caisson_client.ConnectionFailedError):
                client.whoami()

            async def connect() -> str:
                async with caisson_client.AsyncClient(url, token=token, tls=trusted) as client:
                    return (await client.whoami()).name

            self.assertEqual(asyncio.run(connect()), "tls")

    def test_OneClientServesManyThreadsAndTasks(self) -> None:
        with Server() as server, caisson_client.Client(f"unix:{server.socket}") as client:
            with caisson_client.Sandbox.create(client=client) as sandbox:
                with concurrent.futures.ThreadPoolExecutor(8) as threads:
                    results = list(threads.map(lambda i: sandbox.run(["echo", str(i)]).stdout, range(40)))
                self.assertEqual(results, [f"{i}\n" for i in range(40)])

            async def run_all() -> list[str]:
                async with caisson_client.AsyncClient(f"unix:{server.socket}") as other:
                    async with await caisson_client.AsyncSandbox.create(client=other) as sandbox:
                        runs = [sandbox.run(["echo", str(i)]) for i in range(40)]
                        return [one.stdout for one in await asyncio.gather(*runs)]

            self.assertEqual(asyncio.run(run_all()), [f"{i}\n" for i in range(40)])

    def test_CancelledRunKillsTheCommand(self) -> None:
        async def cancel(url: str) -> str:
            async with caisson_client.AsyncClient(url) as client:
                async with await caisson_client.AsyncSandbox.create(client=client) as sandbox:
                    task = asyncio.ensure_future(sandbox.run("touch begun; sleep 1000; touch ended"))
                    while "begun" not in [one.name for one in await sandbox.files.list()]:
                        await asyncio.sleep(0.02)
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                    look = "for i in $(seq 200); do grep -qx sleep /proc/[0-9]*/comm || break; sleep 0.05; done; ls; " \
                           "grep -x sleep /proc/[0-9]*/comm || echo gone"
                    return (await sandbox.run(["bash", "-c", look])).stdout

        with Server() as server:
            self.assertEqual(asyncio.run(cancel(f"unix:{server.socket}")), "begun\ngone\n")

    def test_ClosingAStreamEndsTheLoopOfAnotherThread(self) -> None:
        with Server() as server, caisson_client.Client(f"unix:{server.socket}") as client:
            with caisson_client.Sandbox.create(client=client) as sandbox:
                for stream in (client.events(), sandbox.stream("echo first; sleep 1000")):
                    with concurrent.futures.ThreadPoolExecutor(1) as threads:
                        begun = threading.Event()

                        def read() -> None:
                            for _ in stream:
                                begun.set()

                        reading = threads.submit(read)
                        sandbox.start("true")  # an event
                        self.assertTrue(begun.wait(30))
                        stream.close()
                        reading.result(30)

    def test_ClosingAStreamEndsTheLoopOfAnotherTask(self) -> None:
        async def close_all(url: str) -> None:
            async with caisson_client.AsyncClient(url) as client:
                async with await caisson_client.AsyncSandbox.create(client=client) as sandbox:
                    for stream in (await client.events(), await sandbox.stream("echo first; sleep 1000")):
                        begun = asyncio.Event()

                        async def read() -> str:
                            async for _ in stream:
                                begun.set()
                            return "ended"

                        reading = asyncio.ensure_future(read())
                        await sandbox.start("true")  # an event
                        await asyncio.wait_for(begun.wait(), 30)
                        await stream.close()
                        self.assertEqual(await asyncio.wait_for(reading, 30), "ended")

        with Server() as server:
            asyncio.run(close_all(f"unix:{server.socket}"))

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

    def test_MethodsTakeEveryFieldOfTheDocument(self) -> None:
        client, sandbox = caisson_client.Client, caisson_client.Sandbox
        files, network = type(offline().files), type(offline().network)
        methods = {
            "createSandbox": [sandbox.create], "listSandboxes": [client.sandboxes], "extendSandbox": [sandbox.extend],
            "runCommand": [sandbox.run, sandbox.start, sandbox.stream], "openTerminal": [sandbox.terminal],
            "streamOutput": [caisson_client.Command.output], "writeStdin": [caisson_client.Command.write],
            "sendSignal": [caisson_client.Command.signal], "createCheckpoint": [sandbox.checkpoint],
            "restoreCheckpoint": [sandbox.restore], "forkSandbox": [sandbox.fork], "getDiff": [sandbox.diff],
            "commitChanges": [sandbox.commit], "publishPort": [sandbox.expose], "changeNetwork": [network.allow],
            "streamEvents": [client.events], "listFiles": [files.list], "readFile": [files.read], "writeFile": [files.write],
            "removeFile": [files.remove], "statFile": [files.stat], "moveFile": [files.move], "makeDirectory": [files.mkdir],
            "watchFiles": [files.watch], "readArchive": [files.pack], "writeArchive": [files.unpack],
            "queryAudit": [type(offline().client.audit).query], "checkPolicy": [type(offline().client.policies).check],
            "answerApproval": [type(offline().client.approvals).answer]}
        # Set by the client: the encoding of input, and fields that follow from the method. request_timeout is a client
        # option.
        chosen = {"encoding", "stdin_encoding", "mode", "action", "args", "from", "to", "request_timeout"}
        with Server() as server:
            document = document_of(server)
        inputs = inputs_of(document)
        self.assertEqual(set(inputs) - set(methods), set(), "operations with fields that are missing in this test")
        for operation, fields in inputs.items():
            ours = {name for method in methods[operation] for name in inspect.signature(method).parameters}
            self.assertEqual(fields - ours - chosen, set(), operation)

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

    def test_StreamSurvivesAKilledServer(self) -> None:
        home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-start-"))
        environment = {**os.environ, "CAISSON_HOME": str(home), "CAISSON_PROGRAM": CAISSON,
                       "PYTHONPATH": str(PYTHON_CLIENT / "src")}
        self.addCleanup(remove_home, home, environment)
        client = subprocess.Popen([sys.executable, "-W", "error", "-c", SURVIVOR], env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check_stream_survives(client, home)

    def test_StreamContinuesAfterARestartOfTheServer(self) -> None:
        async def read_async(url: str, begun: threading.Event) -> tuple[str, int | None]:
            async with caisson_client.AsyncClient(url, start=False) as client:
                sandbox = await caisson_client.AsyncSandbox.create(client=client, name="restart-async")
                text = ""
                async with await sandbox.stream(RESTARTED) as stream:
                    async for piece in stream:
                        text += piece.text
                        begun.set()
                await sandbox.destroy()
                return text, stream.info.exit_code if stream.info else None

        def read_sync(url: str, begun: threading.Event) -> tuple[str, int | None]:
            with caisson_client.Client(url, start=False) as client:
                sandbox = caisson_client.Sandbox.create(client=client, name="restart-sync")
                text = ""
                with sandbox.stream(RESTARTED) as stream:
                    for piece in stream:
                        text += piece.text
                        begun.set()
                sandbox.destroy()
                return text, stream.info.exit_code if stream.info else None

        with Server() as server, concurrent.futures.ThreadPoolExecutor(2) as threads:
            for how in (signal.SIGTERM, signal.SIGKILL):
                for address in (f"unix:{server.socket}", f"http://127.0.0.1:{server.port}"):
                    # Two readers at once: for asyncio and for threads.
                    with self.subTest(signal=how, address=address):
                        os.environ["CAISSON_TOKEN"] = "" if address.startswith("unix") else server.token(f"restart-{how}")
                        events = [threading.Event(), threading.Event()]
                        readers = [threads.submit(lambda: asyncio.run(read_async(address, events[0]))),
                                   threads.submit(read_sync, address, events[1])]
                        for event in events:
                            self.assertTrue(event.wait(30))
                        server.stop(how)
                        time.sleep(0.3)  # no server runs for some time
                        server.start()
                        with caisson_client.Client(f"unix:{server.socket}", token="") as owner:
                            for info in owner.sandboxes().sandboxes:
                                caisson_client.Sandbox(owner, info).files.write("go", "")
                        for reader in readers:
                            self.assertEqual(reader.result(60), ("1\n2\n3\n4\n", 7))
                        os.environ.pop("CAISSON_TOKEN")

    def test_StreamOfAServerThatIsGoneRaises(self) -> None:
        streams = sys.modules["caisson_client._sync.streams"]
        self.addCleanup(setattr, streams, "_RESUME_TIMEOUT", getattr(streams, "_RESUME_TIMEOUT"))
        setattr(streams, "_RESUME_TIMEOUT", 0.5)
        for how in (signal.SIGTERM, signal.SIGKILL):
            with Server() as server, caisson_client.Client(f"unix:{server.socket}") as client:
                sandbox = caisson_client.Sandbox.create(client=client)
                stream = sandbox.stream("echo one; exec sleep 1000")
                self.assertEqual(next(stream).text, "one\n")
                server.stop(how)
                with self.assertRaises(caisson_client.ConnectionFailedError):
                    next(stream)
                self.assertIsNone(stream.info)

    def test_OutputWithoutFollowEndsBeforeTheCommand(self) -> None:
        with Server() as server, caisson_client.Client(f"unix:{server.socket}") as client:
            with caisson_client.Sandbox.create(client=client) as sandbox:
                command = sandbox.start("echo one; exec sleep 1000")
                with command.output() as following:
                    next(following)
                output = command.output(follow=False)
                self.assertEqual("".join(one.text for one in output), "one\n")
                self.assertIsNone(output.info)

    def test_CancelledReadDoesNotEndTheStream(self) -> None:
        async def read(url: str) -> None:
            async with caisson_client.AsyncClient(url) as client:
                async with await caisson_client.AsyncSandbox.create(client=client) as sandbox:
                    stream = await sandbox.stream("for i in 1 2 3 4 5; do echo $i; sleep 0.3; done; exit 3")
                    changes = await sandbox.files.watch()
                    pieces, cancelled = [], 0
                    while True:
                        try:
                            pieces.append(await asyncio.wait_for(stream.__anext__(), 0.05))
                        except asyncio.TimeoutError:
                            cancelled += 1
                        except StopAsyncIteration:
                            break
                    self.assertEqual("".join(one.text for one in pieces), "1\n2\n3\n4\n5\n")
                    self.assertEqual([one.offset for one in pieces], [0, 2, 4, 6, 8])
                    self.assertEqual(stream.info.exit_code if stream.info else None, 3)
                    self.assertGreater(cancelled, 4)
                    with self.assertRaises(asyncio.TimeoutError):
                        await asyncio.wait_for(changes.__anext__(), 0.05)
                    await sandbox.run("touch new")
                    self.assertEqual((await asyncio.wait_for(changes.__anext__(), 30)).path, "new")
                    await changes.close()

        with Server() as server:
            asyncio.run(read(f"unix:{server.socket}"))

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
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(self.scratch)}  # the source may not be writable
        subprocess.run([sys.executable, "-W", "error", "-m", "compileall", "-q", "-f", str(PYTHON_CLIENT / "src")], check=True,
                       env=environment, timeout=60)


def offline() -> caisson_client.Sandbox:
    """Returns a sandbox object without a sandbox, for its types."""
    info = caisson_client.SandboxInfo("none", "", {}, "running", 0, 0)
    return caisson_client.Sandbox(caisson_client.Client("unix:/nowhere"), info)


def inputs_of(document: dict) -> dict[str, set[str]]:
    """Returns the fields of the body and of the query, by operation."""
    found: dict[str, set[str]] = {}
    for methods in document["paths"].values():
        for operation in methods.values():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            fields = set(body.get("properties", {}))
            fields |= {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}
            if fields:
                found[operation["operationId"]] = fields
    return found


def document_of(server: Server) -> dict:
    with caisson_client.Client(f"unix:{server.socket}") as client:
        return client.openapi()


if __name__ == "__main__":
    if not os.access(CAISSON, os.X_OK):
        skip(f"{CAISSON} is not built")
    unittest.main()
