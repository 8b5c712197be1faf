#!/usr/bin/env python3
"""Runs inside a container: tries all uses of caisson and prints the results as JSON.

  probes.py CAISSON PROBE...
"""
import contextlib
import ctypes
import errno
import http.server
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import threading

TIMEOUT = 300
CAISSON = sys.argv[1] if len(sys.argv) > 1 else ""
FLAGS = os.environ.get("CAISSON_FLAGS", "").split()  # of the row


def caisson(*arguments, **options):
    return subprocess.run([CAISSON, *arguments], capture_output=True, text=True, errors="replace", timeout=TIMEOUT,
                          stdin=subprocess.DEVNULL, check=False, **options)


def json_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return {}


def reason(done):
    """Returns the key of a failure: its code, or the failed call and errno."""
    error = json_of(done.stdout).get("error")
    if error:
        key = error["code"] if error["code"] != "other" else f"{error['call']} {error['errno'] or error['object']}"
        return {"result": f"refused: {key}", "detail": f"{error['object']}: {error['reason']} ({error['hint']})"}
    call = re.search(r"\((\w+): (E[A-Z0-9]+)\)", done.stderr)
    key = json_of(done.stdout).get("outcome") or (" ".join(call.groups()) if call else f"status {done.returncode}")
    return {"result": f"refused: {key}", "detail": (done.stderr or done.stdout)[-600:]}


def of_run(done, expected):
    found = json_of(done.stdout)
    if found.get("outcome") == "exited" and found["exit_code"] == 0 and found["stdout"] == expected:
        layers = found["layers"]
        lost = [name for name in ("hostname", "proc") if name in layers]  # present if a weaker rung was used
        return {"result": " ".join(["works", *(f"{name}={layers[name].split(':')[0]}" for name in lost)]), "detail": layers.get("level")}
    if found.get("outcome") == "exited":
        return {"result": f"failed: status {found['exit_code']}", "detail": (found["stdout"] + found["stderr"])[-600:]}
    return reason(done)


def run(*flags):
    return of_run(caisson("run", "--json", *FLAGS, *flags, "--", "sh", "-c", "echo inside"), "inside\n")


def landlock():
    return run("--tier", "landlock")


def doctor():
    """Returns the strongest level that doctor reports as available."""
    found = json_of(caisson("doctor", "--json").stdout)
    if not found:
        return {"result": "failed: no JSON"}
    levels = [level["name"] for level in found["levels"] if level["available"] and level["name"] != "none"]
    items = [f"{item['name']}: {item['found']}" for item in found["items"] if item["state"] != "pass"]
    return {"result": "yes: " + " ".join(levels) if levels else "no", "levels": levels, "detail": "; ".join(items)}


def verify():
    done = caisson("verify", "--json", *FLAGS)
    found = json_of(done.stdout)
    if "checks" not in found:
        return reason(done)
    failed = [check for check in found["checks"] if check["state"] == "failed"]
    counts = f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped"
    if not failed:
        return {"result": "works" if found["passed"] else "nothing passed", "detail": counts}
    if not found["passed"]:
        return {"result": "refused: no sandbox", "detail": f"{counts}; {failed[0]['detail']}"}
    names = "most checks" if len(failed) > found["passed"] else " ".join(check["id"] for check in failed)
    return {"result": f"failed: {names}",
            "detail": counts + "; " + "; ".join(f"{check['id']}: {check['detail']}" for check in failed)}


def session():
    """Create, write, read back in a second command, diff, destroy."""
    made = caisson("session", "create", "--json", *FLAGS)
    if made.returncode != 0:
        return reason(made)
    identifier = json_of(made.stdout).get("session_id") or json_of(made.stdout).get("id")
    try:
        for arguments in (["sh", "-c", "echo kept > file"], ["grep", "-q", "kept", "file"]):
            done = caisson("session", "exec", identifier, "--json", "--", *arguments)
            if done.returncode != 0 or json_of(done.stdout).get("exit_code") != 0:
                return reason(done)
        changed = caisson("session", "diff", identifier)
        if "file" not in changed.stdout:
            return {"result": "failed: diff", "detail": changed.stdout + changed.stderr}
        return {"result": "works", "detail": made.stderr[-600:]}
    finally:
        caisson("session", "destroy", identifier)


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"from the server")

    def log_message(self, *_):
        pass


def proxy():
    """Checks that the egress allows one server of the container and denies another port."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    program = ("import sys, urllib.request\n"
               f"print(urllib.request.urlopen('http://localhost:{port}/', timeout=20).read().decode())\n")
    done = caisson("run", "--json", *FLAGS, "--net", "proxy", "--host-port", str(port), "--", "python3", "-c", program)
    server.shutdown()
    return of_run(done, "from the server\n")


def mcp():
    """initialize, create a sandbox, execute in it, destroy it."""
    server = subprocess.Popen([CAISSON, "mcp", *FLAGS, "--workspace", os.getcwd()], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "CAISSON_LOG": "off"})
    watchdog = threading.Timer(TIMEOUT, server.kill)
    watchdog.daemon = True
    watchdog.start()

    def ask(number, method, parameters):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            answer = json_of(line)
            if answer.get("id") == number and "method" not in answer:
                return answer
        raise BrokenPipeError

    def text_of(answer):
        if "error" in answer:
            return False, answer["error"]["message"]
        return (not answer["result"].get("isError"),
                " ".join(part.get("text", "") for part in answer["result"].get("content", [])))

    try:
        begun = ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                      "clientInfo": {"name": "probes", "version": "1"}})
        if "error" in begun:
            return {"result": "failed: initialize", "detail": begun["error"]["message"]}
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
        good, text = text_of(ask(2, "tools/call", {"name": "sandbox_create", "arguments": {}}))
        announced = "announced" if "cannot start a sandbox" in begun["result"].get("instructions", "") else "not announced"
        if not good:
            return {"result": f"refused, {announced}", "detail": text[-600:]}
        identifier = next(value for key, value in json_of(text).items() if key in ("session_id", "id", "sandbox_id"))
        good, text = text_of(ask(3, "tools/call", {"name": "sandbox_execute",
                                                   "arguments": {"session_id": identifier, "command": "echo $((6*7))"}}))
        ask(4, "tools/call", {"name": "sandbox_destroy", "arguments": {"session_id": identifier}})
        return {"result": "works" if good and "42" in text else "failed: execute", "detail": text[-300:]}
    except BrokenPipeError:
        return {"result": f"refused: status {server.wait()}", "detail": server.stderr.read()[-600:]}
    finally:
        with contextlib.suppress(BrokenPipeError):
            server.stdin.close()
        server.wait()
        watchdog.cancel()


def tool(script):
    """Runs a shell script with `caisson run` and the flags of the row."""
    done = caisson("run", "--json", *FLAGS, "--workspace", ".:rw", "--", "sh", "-ec", script)
    return of_run(done, "done\n")


def git():
    shell("git init -q --bare origin.git && git init -q first && cd first && git config user.name a && "
          "git config user.email a@example.org && echo 1 > file && git add file && git commit -q -m first && "
          "git push -q ../origin.git HEAD:refs/heads/main && git -C ../origin.git symbolic-ref HEAD refs/heads/main")
    return tool("git clone -q ./origin.git clone && cd clone && git config user.name b && git config user.email b@example.org"
                " && echo 2 > file && git commit -q -a -m second && test $(git rev-list --count HEAD) = 2 && echo done")


def npm():
    package = {"name": "example", "version": "1.0.0", "scripts": {"test": "node test.js"}}
    pathlib.Path("package.json").write_text(json.dumps(package))
    pathlib.Path("test.js").write_text("require('assert').equal(6 * 7, 42); require('fs').writeFileSync('result', 'ok')\n")
    return tool("npm test >log 2>&1 || { cat log; exit 1; }; grep -q ok result && echo done")


def venv():
    return tool("python3 -m venv env && env/bin/pip --version >log && env/bin/python -c 'import sys; assert sys.prefix !="
                " sys.base_prefix' && echo done")


def make():
    pathlib.Path("Makefile").write_text("all: copy\n\t@echo done\ncopy: README\n\t@cp -p README copy && chmod 600 copy\n")
    return tool("make -s")


def shell(script):
    subprocess.run(["sh", "-ec", script], check=True, capture_output=True, timeout=TIMEOUT)


# Number on x86_64 and aarch64, and arguments for which the kernel itself returns another error than EPERM.
DANGEROUS = {
    "acct": (163, 89, b"/nowhere"),
    "add_key": (248, 217, None, None, None, 0, 0),
    "bpf": (321, 280, 9999, None, 0),
    "clock_settime": (227, 112, 9999, None),
    "fanotify_init": (300, 262, 0xFFFFFFFF, 0),
    "finit_module": (313, 273, -1, None, 0),
    "init_module": (175, 105, None, 0, None),
    "io_uring_setup": (425, 425, 0, None),
    "kexec_file_load": (320, 294, -1, -1, 0, None, 0xFFFF),
    "kexec_load": (246, 104, 0, 99, None, 0),
    "keyctl": (250, 219, 9999),
    "open_by_handle_at": (304, 265, -1, None, 0),
    "perf_event_open": (298, 241, None, 0, -1, -1, 0),
    "reboot": (169, 142, 0, 0, 0, None),
    "swapon": (167, 224, b"/nowhere", 0),
    "syslog": (103, 116, 9999, None, 0),
    "userfaultfd": (323, 282, 0xFFFF),
}


def calls():
    """Returns which dangerous calls reach the kernel. Their arguments are invalid, so none has an effect."""
    libc = ctypes.CDLL(None, use_errno=True)
    column = {"x86_64": 0, "aarch64": 1}[platform.machine()]
    reached, answers = [], []
    for name, entry in DANGEROUS.items():
        ctypes.set_errno(0)
        arguments = [ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in entry[2:]]
        libc.syscall(ctypes.c_long(entry[column]), *arguments)
        answers.append(f"{name} {errno.errorcode.get(ctypes.get_errno())}")
        if ctypes.get_errno() != errno.EPERM:
            reached.append(name)
    for family, name in ((38, "AF_ALG"), (40, "AF_VSOCK")):
        try:
            os.close(ctypes.CDLL(None, use_errno=True).socket(family, 2, 0))
        except OSError:
            pass
        if ctypes.get_errno() != errno.EPERM:
            reached.append(name)
        answers.append(f"{name} {errno.errorcode.get(ctypes.get_errno())}")
    result = "all refused" if not reached else "all reached" if len(reached) == len(answers) else "reached: " + " ".join(reached)
    return {"result": result, "detail": "; ".join(answers)}


PROBES = {probe.__name__: probe for probe in (run, landlock, doctor, verify, session, proxy, mcp, git, npm, venv, make, calls)}


def main():
    directory = pathlib.Path(os.environ.get("PROJECT") or pathlib.Path.home() / "project")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "README").write_text("a project\n")
    os.chdir(directory)
    results = {}
    for name in sys.argv[2:]:
        try:
            results[name] = PROBES[name]()
        except Exception as error:  # one probe must not hide the others
            results[name] = {"result": f"failed: {type(error).__name__}", "detail": str(error)[-600:]}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
