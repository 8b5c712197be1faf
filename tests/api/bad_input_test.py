#!/usr/bin/env python3
"""Malformed, huge, slow, pipelined and abandoned requests. The server responds or disconnects, and keeps running."""
import concurrent.futures
import fcntl
import json
import os
import random
import select
import socket
import time

import api
from api import ApiTest, receive_all


class BadInput(ApiTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.alice.create(disk="4M")

    def tearDown(self):
        self.assertIsNone(self.server.process.poll())
        self.assertStatus(self.alice.call("GET", "/v1/sandboxes"), 200)

    def send(self, data, timeout=20):
        sock = self.server.raw(timeout)
        try:
            sock.sendall(data)
        except OSError:
            pass
        reply = receive_all(sock)
        sock.close()
        return reply

    def request(self, method, path, *headers, body=b""):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.alice.token}", *headers, "", ""]
        return "\r\n".join(lines).encode() + body

    def test_malformed_heads_get_an_error(self):
        # CONFORMS("R-HTTP-7")
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n", b"\r\n\r\n\r\n\r\n",
                     self.request("GET", "/v1/../v1/sandboxes"), self.request("GET", "/v1/%2e%2e/x"), self.request("GET", "//"),
                     self.request("GET", "/v1/sandboxes", "Host: other"), self.request("POST", "/v1/sandboxes", "Transfer-Encoding: gzip"),
                     self.request("POST", "/v1/sandboxes", "Content-Length: 1", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
                     self.request("POST", "/v1/sandboxes", "Content-Length: 18446744073709551616"),
                     self.request("POST", "/v1/sandboxes", "Content-Length: 1", "Content-Length: 2", body=b"{}")):
            reply = self.send(data)
            self.assertTrue(reply.startswith(b"HTTP/1.1 4") or reply.startswith(b"HTTP/1.1 5"), (data, reply))
            self.assertFalse(reply.startswith(b"HTTP/1.1 500"), (data, reply))

    def test_refused_head_requests_get_no_body(self):
        for path, body in (("/v1/nonsense", b"abc"), ("/v1/%00", b""), ("/v1/whoami?x=1", b"")):
            reply = self.send(self.request("HEAD", path, f"Content-Length: {len(body)}", "Connection: close", body=body))
            self.assertTrue(reply.startswith(b"HTTP/1.1 4"), reply)
            self.assertTrue(reply.endswith(b"\r\n\r\n"), reply)

    def test_huge_requests_are_cut_off(self):
        # CONFORMS("R-HTTP-7")
        self.assertTrue(self.send(self.request("GET", "/v1/" + "a" * 20000)).startswith(b"HTTP/1.1 431"))
        self.assertTrue(self.send(self.request("GET", "/v1/sandboxes", *[f"X-{i}: y" for i in range(300)])).startswith(b"HTTP/1.1 431"))
        reply = self.send(self.request("POST", "/v1/sandboxes", "Content-Type: application/json", f"Content-Length: {50 << 20}", body=b"x" * 100000))
        self.assertTrue(reply.startswith(b"HTTP/1.1 413"), reply)
        for body in ("[" * 100000, '{"name":' + "[" * 1000 + "]" * 1000 + "}", '{"name":"' + "x" * 1000 + '"}', "nonsense", '"x"', "null", ""):
            reply = self.alice.call("POST", "/v1/sandboxes", body.encode(), headers={"Content-Type": "application/json"})
            self.assertIn(reply.status, (400, 201), body[:50])

    def test_environment_that_could_not_be_read_back_is_refused(self):
        def variables(count):
            return {f"V{i}": "v" * 4000 for i in range(count)}
        reply = self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"environment": variables(200)}), 400)
        self.assertIn("the limit is", reply.json["reason"])
        box = self.alice.create(environment=variables(100))
        self.assertEqual(self.alice.run(box, "echo ${#V99}").json["stdout"], "4000\n")
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 204)

    def test_invalid_chunks(self):
        for chunks in (b"zz\r\n", b"5\r\nhello", b"-1\r\n\r\n", b"ffffffffffffffffff\r\n", b"5\r\nhelloXX0\r\n\r\n"):
            sock = self.server.raw()
            sock.sendall(self.request("PUT", f"/v1/sandboxes/{self.box}/files/content?path=chunked", "Transfer-Encoding: chunked", body=chunks))
            sock.shutdown(socket.SHUT_WR)
            reply = receive_all(sock)
            sock.close()
            self.assertTrue(reply == b"" or reply.startswith(b"HTTP/1.1 4"), (chunks[:20], reply))
        self.assertStatus(self.alice.get(self.box, "chunked"), 404)

    def test_pipelined_requests_are_answered_in_order(self):
        count = 200
        data = self.request("GET", "/v1/whoami") * (count - 1) + self.request("GET", "/v1/whoami", "Connection: close")
        self.assertEqual(self.send(data).count(b"HTTP/1.1 200 OK"), count)

    def test_unknown_fields_and_parameters_are_errors(self):
        # CONFORMS("R-HTTP-7")
        document = self.alice.call("GET", "/v1/openapi.json").json
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                target = path.replace("{id}", self.box).replace("{command}", "c1").replace("{port}", "1").replace("{approval}", "x").replace("{profile}", "dev")
                if operation.get("security") != []:
                    self.assertStatus(self.owner.call(method.upper(), target, query={"nonsense": "1"}), 400, "invalid_query")
                if "application/json" in operation.get("requestBody", {}).get("content", {}):
                    self.assertStatus(self.owner.call(method.upper(), target, {"nonsense": 1}), 400, "invalid_body")

    def test_random_requests_never_fail_inside(self):
        # CONFORMS("R-HTTP-7")
        random.seed(7)
        document = self.alice.call("GET", "/v1/openapi.json").json
        values = [None, True, -1, 0, 1e308, 2**63, "", "x", "../..", "\x00", "\ud7ff" * 50, [], ["a"], {}, {"a": "b"}, {"a": [1]}]
        operations = [(path, method, operation) for path, methods in document["paths"].items() for method, operation in methods.items()
                      if operation["operationId"] not in ("streamEvents", "streamAudit", "watchFiles", "destroySandbox")]
        for _ in range(400):
            path, method, operation = random.choice(operations)
            for name in ("id", "command", "port", "approval", "profile"):
                value = self.box if name == "id" and random.random() < 0.8 else random.choice(["c1", "1", "%ff", "x" * 300, "dev"])
                path = path.replace("{%s}" % name, value)
            query = {one["name"]: random.choice(["", "x", "-1", "1", "true", "../../etc", "\x00"]) for one in operation.get("parameters", [])
                     if one["in"] == "query" and random.random() < 0.7}
            body = None
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                fields = content["application/json"]["schema"]["properties"]
                body = {name: random.choice(values) for name in fields if random.random() < 0.5}
            elif content:
                body = os.urandom(random.choice([0, 10, 70000]))
            reply = self.alice.call(method.upper(), path, body, query=query)
            self.assertTrue(reply.status < 500 or reply.status in (501, 503, 507), f"{method} {path} {query} {body}: {reply}")

    def test_abandoned_upload_leaves_no_file(self):
        # CONFORMS("R-HTTP-7")
        sock = self.server.raw()
        sock.sendall(self.request("PUT", f"/v1/sandboxes/{self.box}/files/content?path=half", "Content-Length: 1000000", body=b"x" * 100000))
        time.sleep(0.3)
        sock.close()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            names = [one["name"] for one in self.alice.call("GET", f"/v1/sandboxes/{self.box}/files").json["files"]]
            if not any(name == "half" or name.startswith(".caisson-") for name in names):
                return
            time.sleep(0.1)
        self.fail(f"left behind: {names}")

    def test_full_disk_is_507_and_keeps_the_old_file(self):
        self.assertStatus(self.alice.put(self.box, "keep", b"old"), 200)
        self.assertStatus(self.alice.put(self.box, "keep", b"x" * (8 << 20)), 507)
        self.assertEqual(self.alice.get(self.box, "keep").body, b"old")

    def test_uploads_at_once_share_the_disk_limit(self):
        box = self.alice.create(disk="20M")
        size = 18 << 20

        def names():
            return [one["name"] for one in self.alice.call("GET", f"/v1/sandboxes/{box}/files").json["files"]]

        uploads = []
        for i in range(12):
            sock = self.server.raw(60)
            head = self.request("PUT", f"/v1/sandboxes/{box}/files/content?path=f{i}", f"Content-Length: {size}", "Connection: close")
            sock.sendall(head + b"x" * 65536)
            uploads.append(sock)
        self.assertTrue(api.wait_until(lambda: len(names()) == 12), names())

        def finish(sock):
            try:
                sock.sendall(b"x" * (size - 65536))
            except OSError:
                pass  # rejected before it was sent
            reply = receive_all(sock)
            sock.close()
            return reply[:12]

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            replies = list(pool.map(finish, uploads))
        stored = [reply for reply in replies if reply == b"HTTP/1.1 200"]
        self.assertLessEqual(len(stored), 1, replies)
        self.assertTrue(api.wait_until(lambda: len(names()) == len(stored)), names())
        # The space of the rejected uploads is free again.
        self.assertStatus(self.alice.put(box, "more", b"x" * ((20 << 20) - len(stored) * size - (1 << 20))), 200)
        self.assertStatus(self.alice.put(box, "too-much", b"x" * (3 << 20)), 507)
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 204)

    def test_slow_head_is_disconnected(self):
        # CONFORMS("R-HTTP-7")
        sock, idle, known = (self.server.raw(60) for _ in range(3))
        known.sendall(self.request("GET", "/v1/whoami"))
        self.assertIn(b"200 OK", known.recv(4096))
        sock.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: ")
        self.assertTrue(receive_all(sock).startswith(b"HTTP/1.1 408"))
        # A connection without a request is closed too, unless its caller is known.
        self.assertEqual(idle.recv(4096), b"")
        known.sendall(self.request("GET", "/v1/whoami"))
        self.assertIn(b"200 OK", known.recv(4096))
        for one in (sock, idle, known):
            one.close()

    def test_many_idle_connections_delay_nothing(self):
        idle = [self.server.raw() for _ in range(500)]
        begin = time.monotonic()
        self.assertStatus(self.alice.run(self.box, "true"), 200)
        self.assertLess(time.monotonic() - begin, 10)
        for sock in idle:
            sock.close()

    def test_readers_that_stop_reading_delay_nothing(self):
        self.alice.put(self.box, "big", b"x" * (2 << 20))
        slow = []
        for _ in range(30):
            sock = self.server.raw()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(self.request("GET", f"/v1/sandboxes/{self.box}/files/content?path=big"))
            slow.append(sock)
        command = self.alice.run(self.box, "sleep 100", mode="background").json["id"]
        for path in ["/v1/events"] * 16 + [f"/v1/sandboxes/{self.box}/commands/{command}/output"] * 30:
            sock = self.server.raw()
            sock.sendall(self.request("GET", path))
            slow.append(sock)
        self.assertStatus(self.alice.run(self.box, "true"), 200)
        for sock in slow:
            sock.close()


class Records(ApiTest):
    def test_sandbox_keeps_its_token_over_a_restart_or_is_refused(self):
        # CONFORMS("R-HTTP-4")
        for fields in ({"labels": {"a": "x" * 257}}, {"labels": {"x" * 257: "a"}}, {"labels": {str(i): "x" for i in range(65)}},
                       {"name": "x" * 129}):
            self.assertStatus(self.alice.call("POST", "/v1/sandboxes", fields), 400, "invalid_body")
        # Each 0x01 takes six bytes in the record.
        box = self.alice.create(name="\x01" * 128, labels={f"{i:064}": "\x01" * 256 for i in range(64)})
        self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/fork", {"name": "x" * 129}), 400, "invalid_body")
        large = self.alice.call("POST", "/v1/sandboxes", {"policy": {"name": "x" * 1_048_500}})
        self.assertEqual(large.status, 400, large)
        self.server.kill()
        self.server.start()
        self.assertEqual([one["id"] for one in self.alice.call("GET", "/v1/sandboxes").json["sandboxes"]], [box])


class Previews(ApiTest):
    """Previews need no token, so their requests must not displace other records in the audit log."""

    def visit(self, host, count):
        """Sends `count` requests on one connection."""
        sock = self.server.raw(60)
        request = f"GET /{'x' * 3000} HTTP/1.1\r\nHost: {host}.localhost\r\n"
        sock.sendall((request + "\r\n").encode() * (count - 1) + (request + "Connection: close\r\n\r\n").encode())
        reply = receive_all(sock)
        sock.close()
        return reply

    def records(self, **query):
        records = self.owner.call("GET", "/v1/audit", query={"limit": 10000, **query}).json["records"]
        return [one for one in records if one["data"].get("operation") == "preview"]

    def test_unknown_names_are_not_recorded_individually(self):
        box = self.alice.create()
        for host in ("1-cs-" + "0" * 32, f"8000-{box}", "1-x"):
            reply = self.visit(host, 400)
            self.assertEqual(reply.count(b"HTTP/1.1 404"), 400, reply[:500])
        self.assertEqual([one for one in self.records() if one["event"] == "http_request"], [])
        refused = api.wait_until(lambda: [one for one in self.records() if one["event"] == "http_refused"])
        self.assertLessEqual(max(len(one["data"]["path"]) for one in refused), 200)

    def test_visits_of_one_sandbox_are_counted(self):
        box = self.alice.create()
        port = self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/ports", {"port": 8000}), 201).json
        self.assertIn(box, port["preview_url"])
        count = 50
        for _ in range(count):  # nothing listens there: 502
            self.assertIn(b"HTTP/1.1 502", self.visit(f"8000-{box}", 1))
        recorded = len(self.records(sandbox=box))
        self.assertEqual(recorded, 20)
        # The server records its counts when it stops.
        self.server.stop()
        self.server.start()
        last = self.records(sandbox=box)[-1]["data"]
        self.assertEqual(last["further"], count - recorded, last)

    def test_long_paths_are_cut_in_records(self):
        box = self.alice.create()
        self.alice.call("GET", f"/v1/sandboxes/{box}/{'y' * 3000}")
        self.alice.call("GET", f"/v1/sandboxes/{box}/commands/{'y' * 3000}")
        records = self.owner.call("GET", "/v1/audit", query={"sandbox": box, "limit": 1000}).json["records"]
        paths = [one["data"]["path"] for one in records if one["event"].startswith("http_")]
        self.assertTrue(any("/commands/yyy" in one for one in paths), paths)
        self.assertLessEqual(max(map(len, paths)), 200)


class HeldLock(ApiTest):
    def test_requests_that_wait_for_a_sandbox_do_not_delay_others(self):
        box, other = self.alice.create(), self.bob.create()
        # A diff or commit of many files holds this lock for a long time.
        with open(os.path.join(self.server.home, "sessions", box, "lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            waiting = []
            for _ in range(40):
                waiting.append(self.server.raw(60))
                waiting[-1].sendall(f"POST /v1/sandboxes/{box}/extend HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.alice.token}\r\n"
                                    "Content-Type: application/json\r\nContent-Length: 22\r\nConnection: close\r\n\r\n"
                                    '{"sandbox_timeout":60}'.encode())
            # The lock is still held: if these requests needed it, the test would time out.
            self.assertStatus(api.Client(self.server, token="", unix=False).call("GET", "/healthz"), 200)
            self.assertStatus(self.owner.call("GET", "/v1/sandboxes"), 200)
            self.assertStatus(self.alice.call("GET", f"/v1/sandboxes/{box}"), 200)
            self.assertStatus(self.bob.run(other, "true"), 200)
            self.assertStatus(self.bob.put(other, "file", b"x"), 200)
            self.assertEqual(self.bob.get(other, "file").body, b"x")
            self.assertStatus(self.bob.call("DELETE", f"/v1/sandboxes/{self.bob.create()}"), 204)
            reply = receive_all(waiting[0])
            self.assertTrue(reply.startswith(b"HTTP/1.1 409") and b'"busy"' in reply, reply)
        for sock in waiting[1:]:
            self.assertIn(receive_all(sock)[:12], (b"HTTP/1.1 200", b"HTTP/1.1 409"))
            sock.close()
        self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/extend", {"sandbox_timeout": 60}), 200)

    def test_watches_of_a_token_do_not_delay_its_short_requests(self):
        # A fork is started at its first use, so each access to its files waits for the lock, for ten seconds.
        box = self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{self.alice.create()}/fork", {}), 201).json["id"]
        with open(os.path.join(self.server.home, "sessions", box, "lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            watches = [self.alice.open("GET", f"/v1/sandboxes/{box}/files/watch") for _ in range(8)]
            self.assertEqual({one.status for one in watches}, {200})
            for _ in range(20):
                self.assertStatus(self.alice.call("GET", "/v1/templates", timeout=5), 200)
            for one in watches:
                one.connection.close()

    def test_an_expired_sandbox_in_use_does_not_delay_lists(self):
        box = self.alice.create(sandbox_timeout=1)
        with open(os.path.join(self.server.home, "sessions", box, "lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)

            def expired():
                found = [one for one in self.alice.call("GET", "/v1/sandboxes").json["sandboxes"] if one["id"] == box]
                return not found or found[0]["state"] == "expired"

            self.assertTrue(api.wait_until(expired))
            self.assertStatus(self.bob.call("GET", "/v1/sandboxes"), 200)
            self.assertStatus(self.bob.call("DELETE", f"/v1/sandboxes/{self.bob.create()}"), 204)


class StalledUploads(ApiTest):
    def test_uploads_of_some_tokens_do_not_delay_others(self):
        stalled = []
        for number in range(5):
            token = self.server.client(f"slow{number}")
            box = token.create()
            for _ in range(16):
                sock = self.server.raw(60)
                sock.sendall(f"PUT /v1/sandboxes/{box}/files/content?path=x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token.token}\r\n"
                             "Content-Length: 1000000\r\n\r\nx".encode())
                stalled.append(sock)
            # All of them are being handled.
            self.assertTrue(api.wait_until(lambda: token.put(box, "y", b"x").status == 429))
        for caller in (self.owner, self.alice):
            box = caller.create()
            self.assertStatus(caller.put(box, "file", b"x"), 200)
            self.assertStatus(caller.call("DELETE", f"/v1/sandboxes/{box}"), 204)
        # The other uploads must still be running.
        self.assertEqual(select.select(stalled, [], [], 0)[0], [])
        for sock in stalled:
            sock.close()


class UnreadResponses(ApiTest):
    def memory(self):
        with open(f"/proc/{self.server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_memory_of_one_caller_is_bounded(self):
        box = self.alice.create()
        # In JSON each byte becomes six: 200 MB for one command.
        script = r"head -c 16777216 /dev/zero | tr '\0' '\001'"
        body = json.dumps({"command": f"{script}; {script} >&2", "output_limit": 16 << 20})
        before = self.memory()
        unread = []
        for _ in range(3):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(120)
            sock.connect(("127.0.0.1", self.server.port))
            sock.sendall(f"POST /v1/sandboxes/{box}/commands HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.alice.token}\r\n"
                         f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
            self.assertEqual(sock.recv(15, socket.MSG_PEEK | socket.MSG_WAITALL), b"HTTP/1.1 200 OK")
            unread.append(sock)
        self.assertLess(self.memory() - before, 300 << 20)
        self.assertStatus(self.bob.call("GET", "/v1/whoami"), 200)
        reply = receive_all(unread[-1])
        result = json.loads(reply[reply.index(b"\r\n\r\n"):])
        self.assertTrue(result["truncated"]["stdout"], result["truncated"])
        self.assertEqual(len(result["stdout"]) + result["truncated"]["stdout_dropped_bytes"], 16 << 20)
        for sock in unread:
            sock.close()
        # The memory of finished responses is free again.
        whole = lambda: not self.alice.run(box, script, output_limit=16 << 20).json["truncated"]["stdout"]
        self.assertTrue(api.wait_until(whole))

    def test_large_directories_are_cut_and_then_refused(self):
        box = self.alice.create()
        make = "import os; os.makedirs('d', exist_ok=True); [open(f'd/{i:0230}', 'w').close() for i in range(%d, %d)]"
        listing = lambda: self.alice.call("GET", f"/v1/sandboxes/{box}/files", query={"path": "d"})
        self.assertEqual(self.alice.run(box, ["python3", "-c", make % (0, 30_000)]).json["exit_code"], 0)
        reply = self.assertStatus(listing(), 200)
        self.assertTrue(reply.json["truncated"])
        self.assertLess(len(reply.body), 9 << 20)
        self.assertEqual(self.alice.run(box, ["python3", "-c", make % (30_000, 50_001)]).json["exit_code"], 0)
        self.assertStatus(listing(), 400, "too_many_entries")


if __name__ == "__main__":
    api.main()
