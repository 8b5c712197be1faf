#!/usr/bin/env python3
"""The TypeScript client with a real server: every operation of the OpenAPI document, and its generated types.

CAISSON_CLIENT_SUITE: a directory with the built client in dist/ (`make test-clients` creates it).
CAISSON_UPDATE=1: regenerates clients/typescript/src/api.ts after a change of the server's routes.
"""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from harness import CAISSON, ROOT, TYPESCRIPT_CLIENT, Operations, Server, check_stream_survives, make_certificate, remove_home, run_script, servers_of, skip

HERE = pathlib.Path(__file__).resolve().parent
SUITE = pathlib.Path(os.environ.get("CAISSON_CLIENT_SUITE", str(ROOT / "build" / "clients" / "clients" / "typescript")))
CLIENT = SUITE / "dist" / "index.js"


# Prints the output of a command; after the first line, creates the file that the command waits for.
SURVIVOR = """
import { once } from "node:events";
const { Sandbox } = await import(CLIENT);
const sandbox = await Sandbox.create();
const stream = await sandbox.stream("echo one; until [ -e go ]; do sleep 0.05; done; echo two");
for await (const piece of stream) {
  process.stdout.write(piece.text);
  if (piece.text !== "one\\n") continue;
  await once(process.stdin, "data");
  await sandbox.files.write("go", "");
}
console.log(stream.info.exit_code);
await sandbox.destroy();
process.stdin.destroy();
"""


# Prints the whole output of a command while its server is restarted.
RESTARTED = """
import { once } from "node:events";
const { Client, Sandbox } = await import(CLIENT);
const sandbox = await Sandbox.create();
const stream = await sandbox.stream("echo 1; echo 2; until [ -e go ]; do sleep 0.05; done; echo 3; echo 4; exit 7");
let text = "";
const reading = (async () => { for await (const piece of stream) text += piece.text; })();
while (!text.includes("2")) await new Promise(setImmediate);
console.log("begun");
await once(process.stdin, "data");
await sandbox.files.write("go", "");
await reading;
console.log(JSON.stringify([text, stream.info?.exit_code]));
await sandbox.destroy();
process.stdin.destroy();
"""


# Writes to a terminal that nothing reads, before and after the server is killed.
WRITER = """
import { once } from "node:events";
const { Sandbox } = await import(CLIENT);
const sandbox = await Sandbox.create();
const terminal = await sandbox.terminal("stty -echo; exec cat > /dev/null");
const count = () => ["drain", "close", "error", "finish"].reduce((sum, name) => sum + terminal.socket.listenerCount(name), 0);
const before = count();
await Promise.all([...Array(40)].map(() => terminal.write("x".repeat(999) + "\\n")));
console.log("open");
await once(process.stdin, "data");
const name = (write) => write.then(() => "written", (error) => error.name);
// A process that the server just forked may keep the connection open a little longer.
let outcome = "written";
while (outcome === "written") outcome = await name(terminal.write("x".repeat(200000)));
console.log(outcome);
console.log(await name(terminal.write("x")));
console.log(await name(terminal.resize(10, 10)));
console.log("listeners:", Math.max(0, count() - before));
const shown = async () => { for await (const bytes of terminal) void bytes; };
console.log(await name(shown()));
terminal.close();
sandbox.client.close();
process.stdin.destroy();
"""


def document_of(server: Server) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/openapi.json", timeout=30) as response:
        return response.read()


class TypeScriptClient(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.scratch = tempfile.mkdtemp(prefix="caisson-typescript-")
        self.addCleanup(shutil.rmtree, self.scratch)

    def test_ClientReachesEveryOperation(self) -> None:
        with Server() as server:
            command = ["node", str(HERE / "typescript_scenario.mjs"), str(CLIENT), f"http://127.0.0.1:{server.port}",
                       server.token("typescript"), str(server.workspace), self.scratch]
            requests = run_script(command, server.environment)
            self.assertEqual(Operations(json.loads(document_of(server))).missing(requests), [])

    def run_code(self, code: str, environment: dict[str, str], *options: str) -> str:
        code = f"const {{ Client, Sandbox, ConnectionFailedError }} = await import({json.dumps(CLIENT.as_uri())});\n{code}"
        done = subprocess.run(["node", *options, "--input-type=module", "-e", code], env=environment, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_TlsCertificateIsVerified(self) -> None:
        certificate, key = make_certificate(pathlib.Path(self.scratch))
        with Server("--tls-cert", certificate, "--tls-key", key) as server:
            options = json.dumps({"url": f"https://127.0.0.1:{server.port}", "token": server.token("tls")})
            code = (f"const client = new Client({options});"
                    "try { console.log((await client.whoami()).name); } catch (e) { console.log(e.name); }")
            trusting = {**server.environment, "NODE_EXTRA_CA_CERTS": certificate}
            self.assertEqual(self.run_code(code, trusting), "tls\n")
            self.assertEqual(self.run_code(code, server.environment), "ConnectionFailedError\n")
            # Over node:https, which long commands and terminals use.
            code = (f"const client = new Client({options}); const sandbox = await Sandbox.create({{ client }});"
                    "console.log((await sandbox.run('echo long', { command_timeout: 1000 })).stdout.trim());"
                    "for await (const data of await sandbox.terminal('echo typed')) process.stdout.write(data);"
                    "await sandbox.destroy();")
            self.assertEqual(self.run_code(code, trusting).split(), ["long", "typed"])

    def test_GarbageCollectionDoesNotTruncateBody(self) -> None:
        with Server() as server:
            options = json.dumps({"url": f"http://127.0.0.1:{server.port}", "token": server.token("gc")})
            code = (f"const client = new Client({options}); const sandbox = await Sandbox.create({{ client }});"
                    "await sandbox.files.write('big', Buffer.alloc(512000, 'x'));"
                    "const response = await client.send('readFile', { path: { id: sandbox.id }, query: { path: 'big' } });"
                    "for (let i = 0; i < 50; ++i) { gc(); await new Promise(setImmediate); }"
                    "let size = 0; for await (const piece of response.body) size += piece.length;"
                    "console.log(size); await sandbox.destroy();")
            self.assertEqual(self.run_code(code, server.environment, "--expose-gc"), "512000\n")

    def test_OneClientServesManyCallsAtOnce(self) -> None:
        with Server() as server:
            code = ("const sandbox = await Sandbox.create();"
                    "const runs = [...Array(40).keys()].map((i) => sandbox.run(['echo', String(i)]));"
                    "console.log((await Promise.all(runs)).map((one) => one.stdout.trim()).join(' '));"
                    "await sandbox.destroy();")
            self.assertEqual(self.run_code(code, server.environment).split(), [str(i) for i in range(40)])

    def test_ClosingAStreamEndsItsLoop(self) -> None:
        with Server() as server:
            code = ("const client = new Client(); const sandbox = await Sandbox.create({ client });"
                    "for (const stream of [await client.events(), await sandbox.stream('echo first; sleep 1000')]) {"
                    "  const reading = (async () => { for await (const one of stream) void one; return 'ended'; })();"
                    "  await sandbox.run('true'); stream.close(); console.log(await reading);"
                    "}"
                    "await sandbox.destroy();")
            self.assertEqual(self.run_code(code, server.environment), "ended\nended\n")

    def test_TypesMatchTheDocument(self) -> None:
        with Server() as server:
            document = document_of(server)
        made = subprocess.run(["node", str(TYPESCRIPT_CLIENT / "scripts" / "generate_types.mjs")], input=document,
                              capture_output=True, check=True, timeout=60)
        target = TYPESCRIPT_CLIENT / "src" / "api.ts"
        if os.environ.get("CAISSON_UPDATE"):
            target.write_bytes(made.stdout)
        self.assertEqual(made.stdout.decode(), target.read_text(), "out of date: run this test with CAISSON_UPDATE=1")

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
            # Only one server was started: a second one would have logged an error.
            self.assertEqual((home / "server" / "serve.log").read_text().count("\n"), 1)
            self.assertFalse((home / "server" / "serve.starting").exists())
        finally:
            for pid in servers_of(home):
                os.kill(pid, 15)
            remove_home(home, environment)

    def test_LockOfADeadClientIsTakenOver(self) -> None:
        home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-start-"))
        environment = {**os.environ, "CAISSON_HOME": str(home), "CAISSON_PROGRAM": CAISSON}
        dead = subprocess.Popen(["true"])
        dead.wait()
        (home / "server").mkdir(mode=0o700)
        (home / "server" / "serve.starting").write_text(str(dead.pid))
        try:
            self.assertEqual(self.run_code("console.log((await new Client().whoami()).owner);", environment), "true\n")
        finally:
            for pid in servers_of(home):
                os.kill(pid, 15)
            remove_home(home, environment)

    def test_StreamSurvivesAKilledServer(self) -> None:
        home = pathlib.Path(tempfile.mkdtemp(prefix="caisson-start-"))
        environment = {**os.environ, "CAISSON_HOME": str(home), "CAISSON_PROGRAM": CAISSON}
        self.addCleanup(remove_home, home, environment)
        code = SURVIVOR.replace("CLIENT", json.dumps(CLIENT.as_uri()))
        client = subprocess.Popen(["node", "--input-type=module", "-e", code], env=environment, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check_stream_survives(client, home)

    def test_StreamContinuesAfterARestartOfTheServer(self) -> None:
        with Server() as server:
            for how in (signal.SIGTERM, signal.SIGKILL):
                for address in (f"unix:{server.socket}", f"http://127.0.0.1:{server.port}"):
                    with self.subTest(signal=how, address=address):
                        token = "" if address.startswith("unix") else server.token(f"restart-{how}")
                        code = RESTARTED.replace("CLIENT", json.dumps(CLIENT.as_uri()))
                        environment = {**server.environment, "CAISSON_URL": address, "CAISSON_TOKEN": token}
                        client = subprocess.Popen(["node", "--input-type=module", "-e", code], env=environment,
                                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                        self.addCleanup(client.kill)
                        assert client.stdout is not None
                        self.assertEqual(client.stdout.readline(), "begun\n")
                        server.stop(how)
                        time.sleep(0.3)  # no server runs for some time
                        server.start()
                        self.assertEqual(client.communicate("go\n", timeout=60), ('["1\\n2\\n3\\n4\\n",7]\n', ""))

    def test_ReadsThatOverlapKeepTheOrder(self) -> None:
        with Server() as server:
            code = ("const sandbox = await Sandbox.create();"
                    "const stream = await sandbox.stream('for i in 1 2 3; do echo $i; sleep 0.2; done; exit 3');"
                    "const reads = [stream.next(), stream.next(), stream.next(), stream.next()];"
                    "console.log((await Promise.all(reads)).map((one) => one.value?.text ?? 'end').join(''), stream.info.exit_code);"
                    "await sandbox.destroy();")
            self.assertEqual(self.run_code(code, server.environment), "1\n2\n3\nend 3\n")

    def test_OutputWithoutFollowEndsBeforeTheCommand(self) -> None:
        with Server() as server:
            code = ("const sandbox = await Sandbox.create(); const command = await sandbox.start('echo one; exec sleep 1000');"
                    "for await (const piece of await command.output()) break;"
                    "const output = await command.output({ follow: false });"
                    "for await (const piece of output) process.stdout.write(piece.text);"
                    "console.log(output.info); await sandbox.destroy();")
            self.assertEqual(self.run_code(code, server.environment), "one\nundefined\n")

    def test_TerminalWriteRejectsAfterTheServerWasKilled(self) -> None:
        for scheme in ("unix", "http"):
            with self.subTest(scheme=scheme), Server() as server:
                address = f"unix:{server.socket}" if scheme == "unix" else f"http://127.0.0.1:{server.port}"
                token = "" if scheme == "unix" else server.token("terminal")
                environment = {**server.environment, "CAISSON_URL": address, "CAISSON_TOKEN": token}
                code = WRITER.replace("CLIENT", json.dumps(CLIENT.as_uri()))
                client = subprocess.Popen(["node", "--input-type=module", "-e", code], env=environment, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(client.kill)
                assert client.stdout is not None
                self.assertEqual(client.stdout.readline(), "open\n")
                server.stop(signal.SIGKILL)
                expected = "ConnectionFailedError\n" * 3 + "listeners: 0\nConnectionFailedError\n"
                self.assertEqual(client.communicate("go\n", timeout=60), (expected, ""))

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
