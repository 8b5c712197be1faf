#!/usr/bin/env python3
"""stress.py CAISSON [CLIENTS [ROUNDS]]: runs many clients against one `caisson mcp --http`, with all operations at once.

Half of the clients use 2026-07-28, half of these with the tasks extension in every call. The others use 2025-11-25 with
one session each. Every client has separate sandboxes and checks that outputs, files, states and errors belong to it.
Every client runs tasks: it polls them, reads their output so far, cancels one, and fetches the results on a new
connection. No task may be lost or belong to another client. Clients also cancel running calls, decline prompts, and
listen to streams of changes. At the end the server must stop on request and leave nothing. Built with ThreadSanitizer
(make test-mcp-stress), the server must report no errors.
"""
import http.client
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
CAPABILITIES = {"elicitation": {"form": {}}}
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
WAIT = 240  # seconds for one response of an instrumented server, on two cores, with sixty other clients


TASK_IDS = []  # of all clients
TASKS_LOCK = threading.Lock()


class Failure(Exception):
    pass


class Client:
    def __init__(self, port, number, tasks=False):
        self.port, self.number, self.ids = port, number, 0
        self.modern = number % 2 == 0
        self.tasks = tasks or number % 4 == 0  # declared; 2025-11-25 has nothing to declare
        self.session = None
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
        if not self.modern:
            self.request("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "s", "version": "1"}})
            self.post(self.connection, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            self.connection.getresponse().read()

    def message(self, method, params):
        self.ids += 1
        if self.modern:
            params = {**params, "_meta": {"io.modelcontextprotocol/protocolVersion": MODERN,
                                          "io.modelcontextprotocol/clientCapabilities": {**CAPABILITIES, **(TASKS if self.tasks else {})}}}
        return {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}

    def post(self, connection, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.modern:
            headers.update({"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]})
            params = message.get("params", {})
            kind = message["method"].split("/")[0]
            name = params.get({"resources": "uri", "tasks": "taskId"}.get(kind, "name"))
            if name:
                headers["Mcp-Name"] = name
        elif self.session:
            headers.update({"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": self.session})
        connection.request("POST", "/mcp", json.dumps(message), headers)

    def request(self, method, params):
        message = self.message(method, params)
        self.post(self.connection, message)
        response = self.connection.getresponse()
        self.session = response.getheader("Mcp-Session-Id") or self.session
        body = response.read().decode()
        if response.getheader("Content-Type", "").startswith("text/event-stream"):
            pieces = [json.loads(line[5:]) for line in body.splitlines() if line.startswith("data:") and line[5:].strip()]
        else:
            pieces = [json.loads(body)]
        for piece in pieces:
            if piece.get("id") == message["id"]:
                if "result" not in piece and "error" not in piece:
                    raise Failure(f"neither result nor error: {piece}")
                return piece
        raise Failure(f"{method}: no answer in {body[:300]!r} ({response.status})")

    def tool(self, name, /, **arguments):
        answer = self.request("tools/call", {"name": name, "arguments": arguments})
        result = answer.get("result", {})
        if result.get("resultType") == "task" and self.tasks:
            result = self.ended(result["taskId"]).get("result", {})
        if result.get("isError") or "structuredContent" not in result:
            raise Failure(f"{name}: {json.dumps(answer)[:600]}")
        return result["structuredContent"]

    def touch(self, box, path):
        self.tool("sandbox_write_file", sandbox_id=box, path=path, content="")

    def ended(self, task):
        """Returns the task after its end."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            state = self.request("tasks/get", {"taskId": task})
            if state.get("result", {}).get("status") not in ("working", "input_required"):
                return state.get("result", state)
            time.sleep(0.1)
        raise Failure(f"the task does not end: {state}")

    def begin_task(self, box, command):
        params = {"name": "sandbox_execute", "arguments": {"sandbox_id": box, "command": command, "wait_ms": 0}}
        answer = self.request("tools/call", params if self.modern else {**params, "task": {"ttl": WAIT * 1000}})
        result = answer.get("result", {})
        task = result.get("taskId") if result.get("resultType") == "task" else result.get("task", {}).get("taskId")
        if not task:
            raise Failure(f"no task: {json.dumps(answer)[:600]}")
        return task

    def output_of(self, task):
        """Returns the standard output of a task after its end."""
        if self.modern:
            state = self.ended(task)
            result = state.get("result", {})
        else:  # waits for the end
            state = result = self.request("tasks/result", {"taskId": task}).get("result", {})
        if "structuredContent" not in result:
            raise Failure(f"a task without a result: {json.dumps(state)[:600]}")
        return result["structuredContent"]["stdout"]

    def output_so_far(self, task, wanted):
        """Polls a task until its output so far has a line; returns its state."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            state = self.request("tasks/get", {"taskId": task}).get("result", {})
            shown = state.get("_meta", {}).get("caisson/command", {}).get("stdout", "")
            if wanted in shown or state.get("status") != "working":
                return state
            time.sleep(0.1)
        raise Failure(f"the output of a task does not appear: {state}")

    def heard_end(self, task):
        """Listens to the task on another connection; returns the notification of its end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        self.post(connection, self.message("subscriptions/listen", {"notifications": {"taskIds": [task]}}))
        response = connection.getresponse()
        try:
            while line := response.readline():
                message = json.loads(line[5:]) if line.startswith(b"data:") and line[5:].strip() else {}
                if message.get("method") == "notifications/tasks" and message["params"]["status"] == "completed":
                    return message["params"]
        finally:
            connection.close()
        raise Failure("the stream of notifications ended before the task")

    def begin_and_leave(self, box):
        """Starts a call and cancels it: since 2026-07-28 by closing the connection, before by a notification. The
        notification uses another connection and could arrive before the call, so it is sent when the command runs."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        message = self.message("tools/call", {"name": "sandbox_execute", "arguments": {"sandbox_id": box, "command": "sleep 1000"}})
        self.post(connection, message)
        if self.modern:
            time.sleep(random.random() * 0.3)
        else:
            while self.tool("sandbox_execute", sandbox_id=box, command="pgrep sleep || echo none")["stdout"] == "none\n":
                time.sleep(0.05)
            self.post(self.connection, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}})
            self.connection.getresponse().read()
        connection.close()

    def end(self):
        if self.session:
            self.connection.request("DELETE", "/mcp", headers={"Mcp-Session-Id": self.session, "MCP-Protocol-Version": LEGACY})
            self.connection.getresponse().read()
        self.connection.close()


def expect(what, got, wanted):
    if got != wanted:
        raise Failure(f"{what}: {got!r} instead of {wanted!r}")


def one_round(client, round_number, outside):
    mark = f"client-{client.number}-round-{round_number}"
    box = client.tool("sandbox_create", empty=True)["sandbox_id"]
    expect("output", client.tool("sandbox_execute", sandbox_id=box, command=f"echo {mark}; exit 3")["stdout"], mark + "\n")
    client.tool("sandbox_write_file", sandbox_id=box, path="mine", content=mark)
    expect("file", client.tool("sandbox_read_file", sandbox_id=box, path="mine")["content"], mark)
    client.begin_and_leave(box)
    tasks_round(Client(client.port, client.number, tasks=True), box, mark)
    for _ in range(3):
        expect("echo", client.tool("sandbox_execute", sandbox_id=box, command="cat mine")["stdout"], mark)
    client.request("resources/read", {"uri": f"caisson://{box}/fs/mine"})
    client.request("resources/list", {})
    client.request("tools/list", {})
    if (client.number // 2 + round_number) % 2 == 0:
        client.tool("sandbox_checkpoint", sandbox_id=box, name="one", stop_processes=True)
        client.tool("sandbox_write_file", sandbox_id=box, path="mine", content="other")
        client.tool("sandbox_restore", sandbox_id=box, checkpoint="one", stop_processes=True)
        expect("restored", client.tool("sandbox_read_file", sandbox_id=box, path="mine")["content"], mark)
    else:
        background = client.tool("sandbox_execute", sandbox_id=box, command="sleep 1000", background=True)
        client.tool("sandbox_process", sandbox_id=box, exec_id=background["exec_id"], action="kill")
        client.tool("sandbox_info", sandbox_id=box)
    # Another directory for each call, because a denial applies to the same request of every client.
    refused(client, {"name": "sandbox_create", "arguments": {"workspace_path": tempfile.mkdtemp(dir=outside)}})
    client.tool("sandbox_list")
    left = ""
    for _ in range(100):  # the cancelled command disappears after a short delay
        left = client.tool("sandbox_execute", sandbox_id=box, command="pgrep sleep || echo none")["stdout"]
        if left == "none\n":
            break
        time.sleep(0.1)
    expect("processes of a cancelled call", left, "none\n")
    expect("destroyed", client.tool("sandbox_destroy", sandbox_id=box)["destroyed"], True)
    gone = client.request("tools/call", {"name": "sandbox_execute", "arguments": {"sandbox_id": box, "command": "true"}})
    expect("use after the end", gone["result"].get("isError"), True)


def tasks_round(client, box, mark):
    long = client.begin_task(box, f"echo {mark}-begin; until [ -e go ]; do sleep 0.1; done; echo {mark}-long")
    quick = client.begin_task(box, f"until [ -e soon ]; do sleep 0.1; done; echo {mark}-quick")
    endless = client.begin_task(box, f"echo {mark}-endless; sleep 1000")
    for task, name in ((long, "begin"), (endless, "endless")):
        state = client.output_so_far(task, mark)
        expect("running task", state["status"], "working")
        expect("output so far", state["_meta"]["caisson/command"]["stdout"], f"{mark}-{name}\n")
    client.touch(box, "soon")
    expect("task", client.output_of(quick), mark + "-quick\n")
    client.request("tasks/cancel", {"taskId": endless})
    expect("cancelled task", client.ended(endless)["status"], "cancelled")
    client.end()
    client = Client(client.port, client.number, tasks=True)  # a reconnected client has only the ids
    expect("task of another connection", client.request("tasks/get", {"taskId": long})["result"]["status"], "working")
    client.touch(box, "go")
    if client.modern:
        expect("notification", client.heard_end(long)["result"]["structuredContent"]["stdout"], f"{mark}-begin\n{mark}-long\n")
    # No task is lost: check each again after all have ended.
    expect("long task", client.output_of(long), f"{mark}-begin\n{mark}-long\n")
    expect("quick task", client.output_of(quick), mark + "-quick\n")
    expect("cancelled task", client.ended(endless)["status"], "cancelled")
    expect("forged id", client.request("tasks/get", {"taskId": long[:-1]})["error"]["code"], -32602)
    with TASKS_LOCK:
        TASK_IDS.extend((long, quick, endless))
    client.end()


def refused(client, params):
    """A client that supports prompts declines the prompt; for others the call is denied at once."""
    result = client.request("tools/call", params)["result"]
    if client.modern:
        expect("question", result.get("resultType"), "input_required")
        result = client.request("tools/call", {**params, "requestState": result["requestState"],
                                               "inputResponses": {"approval": {"action": "decline"}}})["result"]
    expect("refusal", result.get("isError"), True)


def listen(port, stop):
    """Reads notifications of changes until the server ends the stream."""
    client = Client(port, 0)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    client.post(connection, client.message("subscriptions/listen", {"notifications": {"resourcesListChanged": True}}))
    response = connection.getresponse()
    seen = 0
    try:
        while not stop.is_set():
            line = response.readline()
            if not line:
                break
            seen += line.startswith(b"data:")
    except OSError:
        pass
    connection.close()
    return seen


def main():
    caisson = os.path.abspath(sys.argv[1])
    clients = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-mcp-stress."))
    for name in ("project", "outside"):
        (scratch / name).mkdir()
    reports = scratch / "report"
    environment = {**os.environ, "CAISSON_HOME": str(scratch / "state"), "CAISSON_LOG": "info",
                   "CLAUDE_PROJECT_DIR": str(scratch / "project"),
                   "TSAN_OPTIONS": f"log_path={reports} exitcode=66 die_after_fork=0 " + os.environ.get("TSAN_OPTIONS", "")}
    log = open(scratch / "server.log", "w+")
    server = subprocess.Popen([caisson, "mcp", "--http", "0", "--http-without-token"],
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
    port = None
    for _ in range(600):
        found = [json.loads(line) for line in open(scratch / "server.log") if '"port"' in line]
        if found:
            port = found[0]["port"]
            break
        if server.poll() is not None:
            break
        time.sleep(0.1)
    if not port:
        sys.exit("the server did not start: " + open(scratch / "server.log").read())

    problems, stop, begin = [], threading.Event(), time.monotonic()
    finished = [0]
    changes = [0] * 8

    def work(number):
        try:
            client = Client(port, number)
            for round_number in range(rounds):
                one_round(client, round_number, str(scratch / "outside"))
            client.end()
            finished[0] += 1
        except Exception as problem:  # noqa: BLE001: every kind of failure is a finding
            problems.append(f"client {number}: {type(problem).__name__}: {problem}")

    def hear(number):
        changes[number] = listen(port, stop)

    ears = [threading.Thread(target=hear, args=(number,)) for number in range(len(changes))]
    crowd = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in ears + crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    took = time.monotonic() - begin
    stop.set()
    server.terminate()
    try:
        status = server.wait(60)
    except subprocess.TimeoutExpired:
        server.kill()
        status = server.wait()
        problems.append("the server did not stop on request")
    for thread in ears:
        thread.join()
    if status != 0:
        problems.append(f"the server ended with status {status}: " + open(scratch / "server.log").read()[-2000:])
    if len(TASK_IDS) != len(set(TASK_IDS)):
        problems.append("two tasks have the same id")
    if min(changes) == 0:
        problems.append(f"a listener received no change: {changes}")
    left = subprocess.run([caisson, "session", "list"], env=environment, capture_output=True, text=True).stdout
    if left:
        problems.append("sessions are left: " + left)
    for report in sorted(scratch.glob("report.*")):
        problems.append(f"ThreadSanitizer, {report.name}:\n{report.read_text()[:12000]}")
    for problem in problems[:20]:
        print(problem, file=sys.stderr)
    print(f"{clients} clients, {finished[0]} of them through {rounds} rounds in {took:.0f} s, {len(TASK_IDS)} tasks, "
          f"{sum(changes)} changes received by {len(changes)} listeners, {len(problems)} problems")
    if problems:
        sys.exit(f"the files of the server are in {scratch}")
    shutil.rmtree(scratch)  # the sandboxes are removed; only the server wrote the remaining files


if __name__ == "__main__":
    main()
