#!/usr/bin/env python3
"""TLS, sockets of a service manager, webhooks, errors on the command line, graceful stop."""
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pty
import pwd
import select
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import api


class Scratch(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="ca-l-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.place, name)


class Tls(Scratch):
    def test_requests_and_downloads_over_tls(self):
        # CONFORMS("R-HTTP-10")
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("key"), "-out", self.path("cert")],
                       check=True, capture_output=True)
        server = api.Server("--tls-cert", self.path("cert"), "--tls-key", self.path("key"))
        self.addCleanup(server.close)
        token = server.token("tls")
        owner = server.owner()
        box = api.Client(server, token, unix=True).create()
        data = os.urandom(2_000_000)
        self.assertEqual(owner.put(box, "f", data).status, 200)
        trust = ssl.create_default_context(cafile=self.path("cert"))
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trust, timeout=30)
        for _ in range(2):
            connection.request("GET", f"/v1/sandboxes/{box}/files/content?path=f", headers={"Authorization": f"Bearer {token}"})
            self.assertEqual(connection.getresponse().read(), data)
        connection.request("PUT", f"/v1/sandboxes/{box}/files/content?path=g", data, {"Authorization": f"Bearer {token}"})
        self.assertEqual(json.loads(connection.getresponse().read())["size"], len(data))
        connection.close()
        plain = server.raw()
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertNotIn(b"200 OK", api.receive_all(plain))
        plain.close()


class ServiceManager(Scratch):
    def test_inherited_sockets_are_served_and_other_users_need_a_token(self):
        # CONFORMS("R-HTTP-3", "R-HTTP-10")
        os.chmod(self.place, 0o755)
        home = self.path("home")
        os.mkdir(home, 0o700)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self.path("s"))
        os.chmod(self.path("s"), 0o666)
        listening.listen()
        environment = dict(os.environ, CAISSON_HOME=home)

        def inherit():
            os.dup2(listening.fileno(), 3)
            os.environ["LISTEN_PID"] = str(os.getpid())

        # Only the child knows its pid, so a shell sets the variable.
        script = 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve'
        process = subprocess.Popen(["sh", "-c", script, api.CAISSON], env=environment, pass_fds=[3] if listening.fileno() == 3 else [],
                                   preexec_fn=None if listening.fileno() == 3 else inherit, close_fds=listening.fileno() == 3,
                                   stderr=subprocess.DEVNULL)
        try:
            client = api.Client(type("S", (), {"socket": self.path("s")})(), unix=True)
            self.assertTrue(client.call("GET", "/v1/whoami").json["owner"])
            if os.getuid() == 0:
                other = next((one.pw_uid for one in pwd.getpwall() if one.pw_uid >= 1000), 65534)
                pid = os.fork()
                if pid == 0:
                    os.setgroups([])
                    os.setgid(other)
                    os.setuid(other)
                    os._exit(0 if client.call("GET", "/v1/whoami").status == 401 else 1)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        finally:
            process.terminate()
            self.assertEqual(process.wait(30), 0)
            listening.close()


    def test_socket_beyond_loopback_needs_tls(self):
        os.mkdir(self.path("home"), 0o700)
        with socket.socket() as listening:
            listening.bind(("0.0.0.0", 0))
            listening.listen()
            script = 'exec 3<&"$1"; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" serve'
            done = subprocess.run(["bash", "-c", script, api.CAISSON, str(listening.fileno())], pass_fds=[listening.fileno()],
                                  env=dict(os.environ, CAISSON_HOME=self.path("home")), capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("only loopback addresses are served without TLS", done.stderr)

    def test_socket_activation_starts_the_server_with_the_first_connection(self):
        # CONFORMS("R-HTTP-10")
        activate = shutil.which("systemd-socket-activate")
        if activate is None:
            self.skipTest("systemd-socket-activate is not installed")
        home = self.path("home")
        os.mkdir(home, 0o700)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {"CAISSON_HOME": home}
        options = [word for name, value in environment.items() for word in ("-E", f"{name}={value}")]
        process = subprocess.Popen([activate, "-l", self.path("s"), "-l", f"127.0.0.1:{port}", *options, api.CAISSON, "serve"],
                                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        try:
            self.assertTrue(api.wait_until(lambda: os.path.exists(self.path("s"))))
            self.assertFalse(os.path.exists(os.path.join(home, "server")))  # nothing runs yet
            server = type("S", (), {"socket": self.path("s"), "port": port})()
            client = api.Client(server, unix=True)
            self.assertTrue(client.call("GET", "/v1/whoami").json["owner"])
            self.assertEqual(api.Client(server, token="x", unix=False).call("GET", "/v1/whoami").status, 401)
            box = client.create()
            self.assertEqual(client.run(box, "echo hi").json["stdout"], "hi\n")
            self.assertEqual(client.call("DELETE", f"/v1/sandboxes/{box}").status, 204)
            # The server must use the manager's sockets and not create others.
            self.assertFalse(os.path.exists(os.path.join(home, "server/socket")))
        finally:
            process.terminate()
            self.assertEqual(process.wait(30), 0)


WHOAMI = """import socket
s = socket.socket(socket.AF_UNIX)
s.settimeout(20)
s.connect({path!r})
s.sendall(b"GET /v1/whoami HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
while piece := s.recv(4096): print(piece.decode(), end="")
"""
PYTHON = "/usr/bin/python3"  # a program that every user can run


def can_unshare():
    return subprocess.run(["unshare", "-r", "true"], capture_output=True).returncode == 0


class UserNamespaces(Scratch):
    def whoami(self, path, *prefix):
        done = subprocess.run([*prefix, PYTHON, "-c", WHOAMI.format(path=path)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_program_in_another_one_is_not_the_owner(self):
        # CONFORMS("R-HTTP-3")
        if not can_unshare():
            self.skipTest("unshare cannot create a user namespace")
        server = api.Server("--socket", self.path("api"))
        self.addCleanup(server.close)
        self.assertIn('"owner":true', self.whoami(self.path("api")))
        refused = self.whoami(self.path("api"), "unshare", "-r")
        self.assertIn(" 401 ", refused)
        self.assertIn("in another user namespace", refused)
        self.assertIn("caisson token create", refused)

    def test_payload_that_sees_the_socket_is_not_the_owner(self):
        # CONFORMS("R-HTTP-3")
        os.chmod(self.place, 0o755)
        server = api.Server("--socket", self.path("api"))
        self.addCleanup(server.close)
        os.chmod(self.path("api"), 0o666)  # as root, a payload has another id
        for option in (["--workspace", self.place + ":ro"], ["--ro", self.place]):
            path = "/workspace/api" if option[0] == "--workspace" else self.path("api")
            seen = self.whoami(path, api.CAISSON, "run", *option, "--")
            self.assertIn(" 401 ", seen)

    def test_server_and_callers_in_the_same_one_work(self):
        if not can_unshare():
            self.skipTest("unshare cannot create a user namespace")
        # Root with a single id has no second id for a program.
        sandbox = "print(owner.run(owner.create(), 'echo inside').json['stdout'], end='')" if os.getuid() != 0 else "print('inside')"
        script = ("import api\n"
                  "server = api.Server()\n"
                  "try:\n"
                  "    owner = server.owner()\n"
                  "    assert owner.call('GET', '/v1/whoami').json['owner']\n"
                  f"    {sandbox}\n"
                  "finally: server.close()\n")
        done = subprocess.run(["unshare", "-c", sys.executable, "-c", script], cwd=os.path.dirname(os.path.abspath(__file__)),
                              env=dict(os.environ, CAISSON_BIN=os.path.abspath(api.CAISSON)), capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "inside\n"), done.stderr)


class OnATerminal(Scratch):
    def serve(self, *options):
        """Returns the output of the server on a terminal until it listens, and the process."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        environment = dict(os.environ, CAISSON_HOME=self.path("home"))
        process = subprocess.Popen([api.CAISSON, "serve", "--listen", "127.0.0.1:0", *options], env=environment, stderr=slave,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(slave)
        text = b""
        while not text.endswith(b"running\r\n") and b"addresses" not in text:
            self.assertTrue(select.select([master], [], [], 30)[0], text)
            text += os.read(master, 4096)
        process.terminate()
        self.assertEqual(process.wait(30), 0)
        return text.decode().replace("\r\n", "\n")

    def test_messages_on_a_terminal_are_plain_text(self):
        text = self.serve()
        self.assertIn(self.path("home/server/socket") + "  for you, without a token", text)
        self.assertRegex(text, r"http://127\.0\.0\.1:\d+  for clients with a token")
        self.assertIn("caisson token create NAME", text)
        self.assertIn("curl --unix-socket " + self.path("home/server/socket") + " -X POST http://localhost/v1/sandboxes", text)
        self.assertNotIn("{", text)
        self.assertIn("Authorization: Bearer TOKEN", self.serve("--socket", "none"))

    def test_option_selects_json(self):
        self.assertEqual(json.loads(self.serve("--json"))["message"], "listening")


class Webhooks(Scratch):
    def test_events_are_delivered_with_a_signature(self):
        # CONFORMS("R-HTTP-10")
        if shutil.which("curl") is None:
            self.skipTest("curl is not installed")
        secret = "0123456789abcdef0123"
        with open(self.path("secret"), "w") as file:
            file.write(secret + "\n")
        os.chmod(self.path("secret"), 0o600)
        received = []

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.headers["X-Caisson-Signature"], body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *arguments):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        server = api.Server(config=f'[webhooks.ci]\nurl = "http://127.0.0.1:{receiver.server_port}/x"\nsecret_file = "{self.path("secret")}"\n')
        self.addCleanup(server.close)
        box = server.owner().create()
        server.owner().call("DELETE", f"/v1/sandboxes/{box}")
        deadline = time.monotonic() + 20
        while len(received) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        kinds = []
        for signature, body in received:
            self.assertEqual(signature, "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest())
            kinds.append(json.loads(body)["type"])
        self.assertEqual(kinds, ["sandbox.created", "sandbox.ended"])


class Mistakes(Scratch):
    def serve(self, *options, config=None):
        if config is not None:
            with open(self.path("c.toml"), "w") as file:
                file.write(config)
            options += ("--config", self.path("c.toml"))
        return subprocess.run([api.CAISSON, "serve", *options], env=dict(os.environ, CAISSON_HOME=self.path("home")),
                              capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)

    def test_are_explained_at_the_start(self):
        # CONFORMS("R-HTTP-10")
        for options, words in ((["--listen", "0.0.0.0:0"], "loopback"), (["--listen", "x"], "expected"), (["--tls-cert", "/x"], "key"),
                               (["--allow-workspace", "/nonexistent"], "directory"), (["extra"], "unexpected argument")):
            done = self.serve(*options)
            self.assertEqual(done.returncode, 125, options)
            self.assertIn(words, done.stderr)
        for config, words in (("nonsense = 1", "unknown key"), ("[templates.x]\nprofile = 1", "string"), ("[templates.x]\nprofile = 'none'", "profile"),
                              ("[webhooks.x]\nurl = 'ftp://x'", "http://"), ("listen = [", "c.toml")):
            done = self.serve("--listen", "127.0.0.1:0", config=config)
            self.assertEqual(done.returncode, 125, config)
            self.assertIn(words, done.stderr)

    def test_socket_in_a_world_writable_directory_is_refused(self):
        os.mkdir(self.path("all"))
        os.chmod(self.path("all"), 0o777)
        done = self.serve("--listen", "none", "--socket", self.path("all/s"))
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("all users may write", done.stderr)

    def test_secrets_that_others_can_read_are_refused(self):
        with open(self.path("secret"), "w") as file:
            file.write("0123456789abcdef0123\n")
        hook = f"[webhooks.x]\nurl = 'http://127.0.0.1:1'\nsecret_file = '{self.path('secret')}'\n"
        for mode in (0o644, 0o660, 0o604, 0o602):
            os.chmod(self.path("secret"), mode)
            for options, config in ((["--listen", "127.0.0.1:0"], hook),
                                    (["--listen", "127.0.0.1:0", "--tls-cert", "/dev/null", "--tls-key", self.path("secret")], None)):
                done = self.serve(*options, config=config)
                self.assertEqual(done.returncode, 125, done.stderr)
                self.assertIn("other users may read or change it", done.stderr)
        os.chmod(self.path("secret"), 0o600)
        if os.getuid() == 0:
            os.chown(self.path("secret"), 65534, 65534)
            self.assertIn("belongs to another user", self.serve("--listen", "127.0.0.1:0", config=hook).stderr)

    def test_second_server_on_one_socket_is_refused(self):
        server = api.Server()
        self.addCleanup(server.close)
        done = subprocess.run([api.CAISSON, "serve", "--listen", "none"], env=server.environment, capture_output=True, text=True, timeout=30)
        self.assertEqual(done.returncode, 125)
        self.assertIn("runs already", done.stderr)


class Stop(Scratch):
    def test_running_requests_finish_and_streams_end(self):
        # CONFORMS("R-HTTP-10")
        server = api.Server()
        self.addCleanup(server.close)
        owner = server.owner()
        box = owner.create()
        stream = owner.open("GET", "/v1/events")
        replies = []
        waiting = threading.Thread(target=lambda: replies.append(owner.run(box, "sleep 1; echo done")))
        waiting.start()
        time.sleep(0.4)
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0)
        waiting.join()
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual(replies[0].json["stdout"], "done\n")
        stream.read()
        stream.connection.close()


class ManyConnections(unittest.TestCase):
    @staticmethod
    def start(directory, descriptors):
        program = os.path.join(directory, "few")
        with open(program, "w") as file:
            file.write(f'#!/bin/sh\nulimit -n {descriptors}\nexec {os.path.abspath(api.CAISSON)} "$@"\n')
        os.chmod(program, 0o755)
        return api.Server(program=program)

    def test_downloads_leave_descriptors(self):
        with tempfile.TemporaryDirectory() as directory:
            server = self.start(directory, 1200)
            downloads = []
            try:
                alice = server.client("alice")
                box = alice.create()
                self.assertEqual(alice.run(box, "truncate -s 100M big").status, 200)
                request = (f"GET /v1/sandboxes/{box}/files/content?path=big HTTP/1.1\r\nHost: localhost\r\n"
                           f"Authorization: Bearer {alice.token}\r\n\r\n").encode()
                for _ in range(600):
                    sock = server.raw(10)
                    downloads.append(sock)
                    sock.sendall(request)
                    self.assertIn(sock.recv(12), (b"HTTP/1.1 200", b"HTTP/1.1 503"))
                self.assertEqual(server.owner().call("GET", "/v1/whoami", timeout=10).status, 200)
                self.assertEqual(server.owner().run(box, "true").status, 200)
                self.assertLess(len(os.listdir(f"/proc/{server.process.pid}/fd")), 1000)
            finally:
                for sock in downloads:
                    sock.close()
                server.close()

    def test_idle_connections_do_not_block_other_callers(self):
        with tempfile.TemporaryDirectory() as directory:
            server = self.start(directory, 1024)  # with this limit the server accepts 256 connections
            try:
                alice = server.client("alice")
                kept = socket.create_connection(("127.0.0.1", server.port), timeout=60)
                request = f"GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {alice.token}\r\n\r\n".encode()
                kept.sendall(request)
                self.assertIn(b"200 OK", kept.recv(4096))
                idle = []
                for number in range(700):
                    sock = socket.socket()
                    sock.bind((f"127.0.1.{1 + number % 50}", 0))  # not another peer
                    sock.settimeout(60)
                    sock.connect(("127.0.0.1", server.port))
                    idle.append(sock)
                self.assertEqual(server.owner().call("GET", "/v1/whoami").status, 200)
                self.assertEqual(alice.call("GET", "/v1/whoami").status, 200)
                kept.sendall(request)  # a connection in use is not closed either
                self.assertIn(b"200 OK", kept.recv(4096))
                metrics = server.owner().call("GET", "/metrics").body.decode()
                open_now = int(next(one for one in metrics.splitlines() if one.startswith("caisson_http_connections ")).split()[1])
                self.assertLess(open_now, 250)
                for sock in (*idle, kept):
                    sock.close()
            finally:
                server.close()


if __name__ == "__main__":
    api.main()
