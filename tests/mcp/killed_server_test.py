"""Tasks of a server that is killed with SIGKILL, over stdio and HTTP: the next server reports their actual state."""
import http.client
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAISSON = os.environ.get("CAISSON_BIN", str(ROOT / "build" / "caisson"))
TIMEOUT = 60  # seconds, for one response or one change of state
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


def eventually(what):
    """Returns the first true value of what(), or its last value after the timeout."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        value = what()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(0.02)


class Server:
    """A `caisson mcp` with one client. begin() sends a request and returns a function that returns the response."""

    def __init__(self, environment, *flags):
        self.ids = 0
        self.process = subprocess.Popen([CAISSON, "mcp", *flags], env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def message(self, method, params):
        self.ids += 1
        return {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": {**params, "_meta": META}}

    def request(self, method, params):
        return self.begin(method, params)()

    def tool(self, name, **arguments):
        answer = self.request("tools/call", {"name": name, "arguments": arguments})
        return answer["result"].get("structuredContent") or answer["result"]

    def task(self, task):
        answer = self.request("tasks/get", {"taskId": task})
        return answer.get("result", answer)

    def start(self, sandbox, command):
        """Starts a command as a task; returns its id."""
        result = self.request("tools/call", {"name": "sandbox_execute", "arguments": {
            "sandbox_id": sandbox, "command": command, "wait_ms": 0}})["result"]
        assert result.get("resultType") == "task", result
        return result["taskId"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


class Stdio(Server):
    def __init__(self, environment, *flags):
        super().__init__(environment, *flags)
        self.buffer, self.answers = b"", {}

    def begin(self, method, params):
        message = self.message(method, params)
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return lambda: self.answer(message["id"])

    def answer(self, number):
        """Returns the response with this id; None if the server exited without it."""
        deadline = time.monotonic() + TIMEOUT
        while number not in self.answers:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("no answer")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return None
            *lines, self.buffer = (self.buffer + piece).split(b"\n")
            for message in map(json.loads, lines):
                if "id" in message:
                    self.answers[message["id"]] = message
        return self.answers.pop(number)


class Http(Server):
    def __init__(self, environment):
        super().__init__({**environment, "CAISSON_LOG": "info"}, "--http", "0", "--http-without-token")
        for line in self.process.stderr:
            if b'"port"' in line:
                self.port = json.loads(line)["port"]
                return
        raise RuntimeError("the server did not start")

    def begin(self, method, params):
        message = self.message(method, params)
        name = params.get("name") or params.get("taskId")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.request("POST", "/mcp", json.dumps(message), {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **({"Mcp-Name": name} if name else {})})
        return lambda: self.answer(connection, message["id"])

    @staticmethod
    def answer(connection, number):
        try:
            body = connection.getresponse().read().decode()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        lines = body.splitlines() if not body.startswith("data:") else [
            line[5:] for line in body.splitlines() if line.startswith("data:") and line[5:].strip()]
        for line in lines:
            line = line[5:] if line.startswith("data:") else line
            if line.startswith("{") and json.loads(line).get("id") == number:
                return json.loads(line)
        return None


class KilledServer:
    """The tests for one transport."""
    transport = None

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-killed-server-"))
        (self.scratch / "project").mkdir()
        self.environment = {**os.environ, "CAISSON_HOME": str(self.scratch / "state"), "CAISSON_LOG": "off",
                            "CLAUDE_PROJECT_DIR": str(self.scratch / "project")}
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            server.end()
        for session in self.sessions():
            subprocess.run([CAISSON, "session", "destroy", session], env=self.environment, check=True, capture_output=True)
        shutil.rmtree(self.scratch, ignore_errors=True)  # does not follow links

    def sessions(self):
        listed = subprocess.run([CAISSON, "session", "list", "--json"], env=self.environment, capture_output=True)
        return [one["id"] for one in json.loads(listed.stdout)["sessions"]]

    def commands(self, sandbox):
        """Returns the background commands of a sandbox, as reported by the session."""
        listed = subprocess.run([CAISSON, "session", "ps", "--json", sandbox], env=self.environment, capture_output=True)
        return json.loads(listed.stdout)["commands"]

    def serve(self):
        self.servers.append(self.transport(self.environment))
        return self.servers[-1]

    def processes(self, mark):
        """Returns how many processes of this machine have the mark in their command line."""
        count = 0
        for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                count += mark.encode() in line.read_bytes()
            except OSError:
                pass  # it ended
        return count

    def ended(self, server, task):
        return eventually(lambda: (state := server.task(task)).get("status") != "working" and state)

    def test_KilledDuringOutput(self):
        # CONFORMS("R-SESSION-10")
        for keep in (False, True):
            with self.subTest(keep=keep):
                mark = f"mark-{os.getpid()}-{self.transport.__name__}-{keep}"
                first = self.serve()
                sandbox = first.tool("sandbox_create", keep=keep)["sandbox_id"]
                task = first.start(sandbox, f": {mark}; i=0; while [ ! -e go ]; do i=$((i+1)); echo line $i; "
                                            "sleep 0.01; done; echo end")
                lines = lambda server: server.task(task).get("_meta", {}).get("caisson/command", {}).get("stdout", "")
                self.assertTrue(eventually(lambda: "line 5\n" in lines(first)))
                first.kill()
                second = self.serve()
                if not keep:
                    state = self.ended(second, task)
                    self.assertEqual(state["status"], "failed", state)
                    self.assertIn("error", state)
                    kept = state["_meta"]["caisson/command"]["stdout"].split("\n")
                    self.assertEqual(kept[:5], [f"line {number}" for number in range(1, 6)])
                    self.assertTrue(eventually(lambda: self.processes(mark) == 0), "a process lives on")
                    continue
                before = len(lines(second))
                self.assertEqual(second.task(task)["status"], "working")
                self.assertTrue(eventually(lambda: len(lines(second)) > before or len(lines(second)) >= 4000))
                second.tool("sandbox_write_file", sandbox_id=sandbox, path="go", content="")
                state = self.ended(second, task)
                self.assertEqual(state["status"], "completed", state)
                result = state["result"]["structuredContent"]
                self.assertEqual((result["status"], result["exit_code"]), ("exited", 0), result)
                self.assertTrue(result["stdout"].startswith("line 1\nline 2\n"), result)
                self.assertTrue(result["stdout"].endswith("end\n"), result)

    def test_KilledAfterTheEndBeforeTheResultWasFetched(self):
        # CONFORMS("R-SESSION-10")
        for keep in (False, True):
            with self.subTest(keep=keep):
                first = self.serve()
                sandbox = first.tool("sandbox_create", keep=keep)["sandbox_id"]
                task = first.start(sandbox, "until [ -e go ]; do sleep 0.02; done; echo result; exit 5")
                first.tool("sandbox_write_file", sandbox_id=sandbox, path="go", content="")
                self.assertTrue(eventually(lambda: [one["exit_code"] for one in self.commands(sandbox)] == [5]))
                first.kill()
                for _ in range(2):  # the result is kept after it was read, and after another kill
                    server = self.serve()
                    state = server.task(task)
                    self.assertEqual(state.get("status"), "completed", state)
                    result = state["result"]["structuredContent"]
                    self.assertEqual((result["exit_code"], result["stdout"]), (5, "result\n"))
                    server.kill()

    def test_KilledAtAnyMomentOfTheStart(self):
        """The response may be lost with the server, but the next server must report the actual state of the command."""
        seen = set()
        for step in range(16):
            keep = step % 2 == 1
            with self.subTest(step=step, keep=keep):
                seen.add(self.kill_during_start(keep, delay=(step // 2) * 0.004))
        self.assertTrue(seen <= {"never started", "ended with the server", "ran on"}, seen)

    def kill_during_start(self, keep, delay):
        mark = f"mark-{os.getpid()}-{self.transport.__name__}-{keep}-{delay}"
        first = self.serve()
        sandbox = first.tool("sandbox_create", keep=keep)["sandbox_id"]
        answer = first.begin("tools/call", {"name": "sandbox_execute", "arguments": {
            "sandbox_id": sandbox, "wait_ms": 0,
            "command": f": {mark}; touch began; until [ -e go ]; do sleep 0.02; done; echo end"}})
        time.sleep(delay)  # only varies the moment; all outcomes are checked
        first.kill()
        answered = (answer() or {}).get("result", {})
        second = self.serve()
        # The sandbox handles requests in order: after this one, the command either was started or never will be.
        self.assertEqual(second.tool("sandbox_execute", sandbox_id=sandbox, command="true").get("exit_code"), 0)
        started = [one["exec"] for one in self.commands(sandbox) if mark in " ".join(one["command"])]
        if not started:
            self.assertNotIn("taskId", answered, "a client has the id of a task that does not exist")
            self.assertTrue(eventually(lambda: self.processes(mark) == 0), "a process lives on")
            return "never started"
        look = lambda wait: second.tool("sandbox_process", sandbox_id=sandbox, exec_id=f"b{started[0]}", wait_ms=wait)
        if not keep:
            state = eventually(lambda: (one := look(0))["status"] != "running" and one)
            self.assertEqual(state["status"], "killed", state)
            self.assertTrue(eventually(lambda: self.processes(mark) == 0), "a process lives on")
            if "taskId" in answered:
                self.assertEqual(second.task(answered["taskId"])["status"], "failed")
            return "ended with the server"
        second.tool("sandbox_write_file", sandbox_id=sandbox, path="go", content="")
        state = look(TIMEOUT * 1000)
        self.assertEqual((state["status"], state.get("exit_code"), state["stdout"]), ("exited", 0, "end\n"), state)
        if "taskId" in answered:
            self.assertEqual(second.task(answered["taskId"])["status"], "completed")
        return "ran on"


class KilledServerOverStdio(KilledServer, unittest.TestCase):
    transport = Stdio


class KilledServerOverHttp(KilledServer, unittest.TestCase):
    transport = Http


if __name__ == "__main__":
    if subprocess.run([CAISSON, "run", "--", "true"], capture_output=True).returncode != 0:
        print("skipped: no sandbox can be started")
        sys.exit(77)
    unittest.main()
