"""A project, a home directory, caisson and a scripted model for the tests of agents."""
import json
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import model_api

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAISSON = os.environ.get("CAISSON_BIN", str(ROOT / "build" / "caisson"))
KEY = "sk-ant-canary-0123456789abcdef"
TIMEOUT = 120
API_HOST, API_ADDRESS = "other.example.org", "93.184.0.3"  # in the internet of tests/network/world.sh


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def main():
    """Runs the tests of the calling file in world.sh, which provides a fake internet."""
    if not os.environ.get("CAISSON_TEST_INTERNET"):
        if os.environ.get("CAISSON_TEST_WORLD"):
            skip("the fake internet could not be created")
        probe = ["unshare", "--net", "true"] if os.geteuid() == 0 else ["unshare", "--user", "--net", "true"]
        if shutil.which("openssl") is None or subprocess.run(probe, capture_output=True).returncode != 0:
            skip("network namespaces or openssl are not available")
        os.execvp("sh", ["sh", str(ROOT / "tests/network/world.sh"), sys.executable, *sys.argv])
    unittest.main()


class AgentTest(unittest.TestCase):
    """Each test has a git project, a home directory and a store; `model(COMMANDS)` starts a model on loopback."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-agents-"))
        for name in ("home", "project", "bin", "store"):
            (self.scratch / name).mkdir(mode=0o755)
        self.home, self.project = self.scratch / "home", self.scratch / "project"
        (self.scratch / "bin" / "caisson").symlink_to(CAISSON)
        subprocess.run(["git", "init", "-q", "."], cwd=self.project, check=True)
        self.environment = {
            "HOME": str(self.home), "CAISSON_HOME": str(self.scratch / "store"), "LANG": "C.UTF-8", "TERM": "xterm",
            "PATH": f"{self.scratch}/bin:/usr/local/bin:/usr/bin:/bin", "ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
        self.servers = []

    def tearDown(self):
        for server in self.servers:
            server.kill()
            server.wait()
        for session in self.sessions():
            self.caisson("session", "destroy", session["id"])
        shutil.rmtree(self.scratch, ignore_errors=True)  # does not follow links

    def run_program(self, *command, **more):
        options = {"cwd": self.project, "env": self.environment, "capture_output": True, "text": True,
                   "timeout": TIMEOUT, "stdin": subprocess.DEVNULL, **more}
        if "input" in options:
            del options["stdin"]
        return subprocess.run(command, **options)

    def caisson(self, *arguments, **more):
        return self.run_program(CAISSON, *arguments, **more)

    def sessions(self):
        listed = self.caisson("session", "list", "--json")
        return json.loads(listed.stdout)["sessions"] if listed.returncode == 0 else []

    def model(self, commands):
        """Starts the model on loopback and returns its address; self.requests() returns the requests that it received."""
        self.log = self.scratch / "requests"
        server = model_api.serve(model_api.Script(commands, str(self.log)))
        return f"http://127.0.0.1:{server.server_address[1]}"

    def model_with_tls(self, commands):
        """Starts the model in the fake internet. Returns its address and the file of the certificate authority."""
        state, self.log = os.environ["CAISSON_TEST_INTERNET"], self.scratch / "requests"
        script, port = self.scratch / "script.json", self.scratch / "port"
        script.write_text(json.dumps(commands))
        self.servers.append(subprocess.Popen(
            ["nsenter", "--target", os.environ["CAISSON_TEST_INTERNET_PID"], "--net", sys.executable,
             str(ROOT / "tests/agents/model_api.py"), str(script), str(self.log), str(port), API_ADDRESS,
             state + "/server.pem", state + "/server-key.pem"]))
        deadline = time.monotonic() + 30
        while not port.exists():
            self.assertLess(time.monotonic(), deadline, "the model did not start")
            self.assertIsNone(self.servers[-1].poll())
            time.sleep(0.02)
        return f"https://{API_HOST}:{port.read_text()}", state + "/server.pem"

    def requests(self):
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def results(self):
        """Returns the results of the last command that the model received, as one text."""
        conversations = [request["results"] for request in self.requests() if request.get("shell")]
        return "\n".join(max(conversations, key=len)) if conversations else ""

    def policy(self):
        """Names are resolved in the fake internet."""
        path = self.scratch / "policy.toml"
        path.write_text('extends = "dev"\n[network]\nmode = "proxy"\ndns_servers = ["93.184.0.2"]\n')
        return str(path)

    def on_terminal(self, command, answers):
        """Runs a program on a terminal; for each (text, answer) waits for the text and sends the answer, which may be a
    function that returns it. Returns the status and the output."""
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.project)
            os.execve(command[0], command, self.environment)
        shown, answers, deadline, pages = b"", list(answers), time.monotonic() + TIMEOUT, 0
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
            if shown.count(b"[Enter/n] ") > pages:
                pages += 1
                os.write(terminal, b"\n")
            if answers and answers[0][0].encode() in shown:
                answer = answers.pop(0)[1]
                os.write(terminal, (answer() if callable(answer) else answer).encode())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(terminal)
        return status, shown.decode(errors="replace")
