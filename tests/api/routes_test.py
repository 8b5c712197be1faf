#!/usr/bin/env python3
"""Every kind of route, through a real server."""
import base64
import concurrent.futures
import http.client
import io
import json
import os
import socket
import struct
import tarfile
import time
import urllib.parse

import api
from api import ApiTest, events


class Sandboxes(ApiTest):
    def test_created_listed_extended_and_destroyed(self):
        # CONFORMS("R-HTTP-1")
        made = self.alice.call("POST", "/v1/sandboxes", {"name": "one", "labels": {"team": "x"}, "sandbox_timeout": 600})
        self.assertStatus(made, 201)
        box = made.json
        self.assertEqual((box["name"], box["labels"], box["workspace"], box["network"]), ("one", {"team": "x"}, "", "none"))
        self.assertEqual(made.headers["Location"], "/v1/sandboxes/" + box["id"])
        found = self.alice.call("GET", "/v1/sandboxes", query={"label": "team=x"}).json["sandboxes"]
        self.assertEqual([one["id"] for one in found], [box["id"]])
        self.assertEqual(self.alice.call("GET", "/v1/sandboxes", query={"label": "team=y"}).json["sandboxes"], [])
        got = self.alice.call("GET", "/v1/sandboxes/" + box["id"]).json
        self.assertEqual(got["policy"]["isolation"]["level"], "full")
        extended = self.alice.call("POST", f"/v1/sandboxes/{box['id']}/extend", {"sandbox_timeout": 9000}).json
        self.assertGreater(extended["expires_in"], 8000)
        self.assertStatus(self.alice.call("DELETE", "/v1/sandboxes/" + box["id"]), 204)
        self.assertStatus(self.alice.call("GET", "/v1/sandboxes/" + box["id"]), 404, "not_found")

    def test_expired_sandbox_with_changes_can_be_extended(self):
        box = self.alice.create(sandbox_timeout=1)
        self.assertStatus(self.alice.put(box, "kept", b"x"), 200)
        is_expired = lambda: self.owner.call("GET", f"/v1/sandboxes/{box}").json.get("state") != "running"
        time.sleep(1.2)
        self.assertTrue(api.wait_until(is_expired))
        reply = self.assertStatus(self.alice.run(box, "true"), 409, "ended")
        self.assertIn("expired", reply.json["reason"])
        self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/extend", {"sandbox_timeout": 600}), 200)
        self.assertEqual(self.alice.run(box, "cat kept").json["stdout"], "x")

    def test_lists_have_pages(self):
        made = {self.bob.create(name=f"p{i}") for i in range(3)}
        first = self.bob.call("GET", "/v1/sandboxes", query={"limit": 2}).json
        second = self.bob.call("GET", "/v1/sandboxes", query={"limit": 2, "cursor": first["next_cursor"]}).json
        seen = [one["id"] for one in first["sandboxes"] + second["sandboxes"]]
        self.assertEqual(len(seen), len(set(seen)))
        self.assertLessEqual(made, set(seen))

    def test_ceilings_bind(self):
        # CONFORMS("R-HTTP-5")
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"command_timeout": 100000}), 400)
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"profile": "bash", "memory": "64G"}), 400)
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"profile": "nonsense"}), 400)

    def test_idempotency_key_replays_and_conflicts(self):
        # CONFORMS("R-HTTP-8")
        key = {"Idempotency-Key": "k1"}
        first = self.alice.call("POST", "/v1/sandboxes", {"name": "idem"}, headers=key)
        again = self.alice.call("POST", "/v1/sandboxes", {"name": "idem"}, headers=key)
        self.assertEqual(first.json["id"], again.json["id"])
        self.assertEqual(again.headers["Idempotency-Replayed"], "true")
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"name": "other"}, headers=key), 409, "idempotency_conflict")
        other = self.bob.call("POST", "/v1/sandboxes", {"name": "idem"}, headers=key)
        self.assertNotEqual(other.json["id"], first.json["id"])


class IdempotencyKeys(ApiTest):
    def kept(self):
        """The names and the sizes of the stored responses."""
        directory = os.path.join(self.server.home, "server/idempotency")
        return {name: os.stat(os.path.join(directory, name)).st_size for name in os.listdir(directory)}

    def test_kept_responses_are_bounded_and_end_with_their_sandbox(self):
        # CONFORMS("R-HTTP-8")
        caller, other = self.server.client("keeper"), self.bob.create()
        box, command = caller.create(), "head -c 900000 /dev/zero | tr '\\0' x"

        def run(number):
            return caller.call("POST", f"/v1/sandboxes/{box}/commands", {"command": command}, headers={"Idempotency-Key": f"k{number}"})

        def run_other():
            return self.bob.call("POST", f"/v1/sandboxes/{other}/commands", {"command": "date +%N"}, headers={"Idempotency-Key": "k"})

        first = run_other()
        self.assertEqual(len(self.assertStatus(run(0), 200).json["stdout"]), 900_000)
        self.assertEqual(run(0).headers["Idempotency-Replayed"], "true")
        for number in range(1, 80):
            self.assertStatus(run(number), 200)
            if number == 40:  # what an earlier server stored counts
                self.server.kill()
                self.server.start()
        self.assertLess(sum(self.kept().values()), 66 << 20)
        self.assertStatus(run(79), 409, "too_large_to_replay")
        self.assertStatus(run(3), 200)
        self.assertStatus(caller.call("DELETE", f"/v1/sandboxes/{box}"), 204)
        self.assertEqual(len(self.kept()), 1)
        self.assertEqual(run_other().json["stdout"], first.json["stdout"])
        self.assertStatus(run(0), 404)
        # Also if the sandbox ended while no server ran.
        self.server.kill()
        self.assertEqual(self.server.caisson("session", "destroy", other).returncode, 0)
        self.server.start()
        self.assertEqual(self.kept(), {})

    def test_large_response_is_not_kept(self):
        # Each quotation mark takes two bytes in the response, and four in the file.
        box = self.alice.create()
        for _ in range(2):
            reply = self.alice.call("POST", f"/v1/sandboxes/{box}/commands", {"command": "head -c 400000 /dev/zero | tr '\\0' '\"'"},
                                    headers={"Idempotency-Key": "large"})
        self.assertStatus(reply, 409, "too_large_to_replay")
        self.assertLess(max(self.kept().values()), 1 << 20)


class Commands(ApiTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.alice.create(name="commands")

    def test_run_and_wait(self):
        # CONFORMS("R-HTTP-1")
        result = self.alice.run(self.box, "echo out; echo err >&2; exit 3").json
        self.assertEqual((result["outcome"], result["exit_code"], result["stdout"], result["stderr"]), ("exited", 3, "out\n", "err\n"))
        result = self.alice.run(self.box, ["cat"], stdin=base64.b64encode(b"\xff\x00x").decode(), stdin_encoding="base64").json
        self.assertEqual((result["stdout_encoding"], base64.b64decode(result["stdout"])), ("base64", b"\xff\x00x"))
        result = self.alice.run(self.box, "echo $A; pwd", environment={"A": "b"}, cwd="/tmp").json
        self.assertEqual(result["stdout"], "b\n/tmp\n")

    def test_limits_are_reasons_in_results(self):
        result = self.alice.run(self.box, "sleep 60", command_timeout=0.3)
        self.assertStatus(result, 200)
        self.assertEqual((result.json["outcome"], result.json["limit"]), ("limit", "time"))
        self.assertStatus(self.alice.run(self.box, "true", command_timeout=86400), 400)

    def test_request_timeout_returns_while_the_command_runs(self):
        reply = self.alice.run(self.box, "sleep 30", request_timeout=0.2)
        self.assertStatus(reply, 202)
        where = f"/v1/sandboxes/{self.box}/commands/{reply.json['id']}"
        self.assertTrue(self.alice.call("GET", where).json["running"])
        self.assertStatus(self.alice.call("DELETE", where), 204)
        self.assertFalse(self.alice.call("GET", where).json["running"])

    def test_background_input_and_signals(self):
        # CONFORMS("R-HTTP-1", "R-HTTP-2")
        number = self.assertStatus(self.alice.run(self.box, ["cat"], mode="background", keep_stdin=True), 202).json["id"]
        where = f"/v1/sandboxes/{self.box}/commands/{number}"
        self.assertStatus(self.alice.call("POST", where + "/stdin", {"data": "hello\n"}), 204)
        self.assertStatus(self.alice.call("POST", where + "/stdin", {"data": "bye\n", "close": True}), 204)
        stream = list(events(self.alice.open("GET", where + "/output")))
        self.assertEqual("".join(data["data"] for kind, _, data in stream if kind == "stdout"), "hello\nbye\n")
        self.assertEqual(stream[-1][0], "exit")
        self.assertEqual(stream[-1][2]["exit_code"], 0)
        number = self.alice.run(self.box, "trap 'echo got; exit 5' TERM; while :; do sleep 0.05; done", mode="background").json["id"]
        where = f"/v1/sandboxes/{self.box}/commands/{number}"
        time.sleep(0.3)
        self.assertStatus(self.alice.call("POST", where + "/signal", {"signal": "NOSUCH"}), 400)
        self.assertStatus(self.alice.call("POST", where + "/signal", {"signal": "KILL"}), 204)
        ended = list(events(self.alice.open("GET", where + "/output")))[-1]
        self.assertEqual(ended[2]["signal"], 9)
        self.assertStatus(self.alice.call("POST", where + "/signal", {"signal": "TERM"}), 409, "ended")

    def test_stream_can_be_left_and_continued(self):
        # CONFORMS("R-HTTP-2")
        response = self.alice.open("POST", f"/v1/sandboxes/{self.box}/commands",
                                   {"command": "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.1; done", "mode": "stream"})
        stream = events(response)
        kind, _, data = next(stream)
        self.assertEqual(kind, "started")
        seen, last = "", None
        for kind, last, piece in stream:
            seen += piece["data"]
            if "line 2" in seen:
                break
        response.connection.close()
        where = f"/v1/sandboxes/{self.box}/commands/{data['command_id']}/output"
        for kind, _, piece in events(self.alice.open("GET", where, headers={"Last-Event-ID": last})):
            if kind == "stdout":
                self.assertEqual(piece["offset"], len(seen))
                seen += piece["data"]
        self.assertEqual(seen, "".join(f"line {i}\n" for i in range(1, 7)))

    def test_vanished_client_ends_its_command(self):
        # CONFORMS("R-HTTP-2")
        connection = self.alice.connection()
        body = json.dumps({"command": "echo $$ > /workspace/pid; sleep 300"})
        connection.request("POST", f"/v1/sandboxes/{self.box}/commands", body, self.alice.headers({"Content-Type": "application/json"}))
        deadline = time.monotonic() + 20
        while self.alice.get(self.box, "pid").status != 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        connection.close()
        while time.monotonic() < deadline:
            if self.alice.run(self.box, "kill -0 $(cat /workspace/pid)").json["exit_code"] != 0:
                return
            time.sleep(0.1)
        self.fail("the command still runs")

    def terminal(self, command, rows=33, columns=99):
        """A terminal: its socket, and a function that returns the next frame as (type, payload)."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(30)
        sock.connect(self.server.socket)
        query = urllib.parse.urlencode({"command": command, "rows": rows, "columns": columns})
        sock.sendall((f"GET /v1/sandboxes/{self.box}/pty?{query} HTTP/1.1\r\n"
                      "Host: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                      f"Authorization: Bearer {self.alice.token}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n").encode())
        stream = sock.makefile("rb")
        self.assertIn(b"101", stream.readline())
        while stream.readline() not in (b"\r\n", b""):
            pass

        def frame():
            first, second = stream.read(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", stream.read(2))[0]
            return first & 15, stream.read(size)

        return sock, frame

    @staticmethod
    def frame_of(data, kind=2):
        mask = b"abcd"
        size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(data))
        return bytes([0x80 | kind]) + size + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(data))

    def test_terminal_is_a_websocket(self):
        # CONFORMS("R-HTTP-2")
        sock, frame = self.terminal("stty size; tty; read x; echo got-$x; exit 4")
        shown, result = b"", None
        typed = False
        while True:
            kind, data = frame()
            if kind == 8:
                break
            if kind == 1:
                result = json.loads(data)
            if kind == 2:
                shown += data
                if b"/dev/" in shown and not typed:
                    typed = True
                    sock.sendall(self.frame_of(b"hi\n"))
        sock.close()
        self.assertIn(b"33 99", shown)
        self.assertIn(b"got-hi", shown)
        self.assertEqual(result["exit_code"], 4)

    def test_terminal_input_finds_the_size_that_was_sent_before_it(self):
        sock, frame = self.terminal("stty -echo; echo ready; while read x; do stty size; done")
        shown = b""
        while b"ready" not in shown:
            shown += frame()[1]
        shown = b""
        for rows in range(10, 60):
            # In one piece, so that the resize and the input arrive together.
            resize = self.frame_of(json.dumps({"rows": rows, "columns": 120}).encode(), kind=1)
            sock.sendall(resize + self.frame_of(b"\n"))
            while shown.count(b"120") < rows - 9:
                kind, data = frame()
                self.assertEqual(kind, 2, data)
                shown += data
        sock.close()
        self.assertEqual(shown.split(), b" ".join(b"%d 120" % rows for rows in range(10, 60)).split())


class Files(ApiTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = cls.alice.create(name="files")
        cls.at = f"/v1/sandboxes/{cls.box}/files"

    def test_written_read_moved_listed_and_removed(self):
        # CONFORMS("R-HTTP-1", "R-HTTP-6")
        data = os.urandom(3_000_000)
        self.assertEqual(self.assertStatus(self.alice.put(self.box, "a/b.bin", data, mode="600"), 200).json["size"], len(data))
        reply = self.alice.get(self.box, "/workspace/a/b.bin")
        self.assertEqual(reply.body, data)
        self.assertIn("attachment", reply.headers["Content-Disposition"])
        self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
        self.assertIn("sandbox", reply.headers["Content-Security-Policy"])
        stat = self.alice.call("GET", self.at + "/stat", query={"path": "a/b.bin"}).json
        self.assertEqual((stat["size"], stat["mode"] & 0o777, stat["type"]), (len(data), 0o600, "regular file"))
        self.assertStatus(self.alice.call("POST", self.at + "/mkdir", {"path": "x/y"}), 204)
        self.assertStatus(self.alice.call("POST", self.at + "/move", {"from": "a/b.bin", "to": "x/y/c"}), 204)
        self.assertStatus(self.alice.get(self.box, "a/b.bin"), 404)
        names = [one["name"] for one in self.alice.call("GET", self.at, query={"path": "x/y"}).json["files"]]
        self.assertEqual(names, ["c"])
        self.assertStatus(self.alice.call("DELETE", self.at + "/content", query={"path": "x"}), 409)
        self.assertStatus(self.alice.call("DELETE", self.at + "/content", query={"path": "x", "recursive": "true"}), 204)
        self.assertStatus(self.alice.call("DELETE", self.at + "/content", query={"path": "x"}), 404)

    def test_ranges(self):
        self.alice.put(self.box, "range", b"0123456789")
        reply = self.alice.get(self.box, "range", headers={"Range": "bytes=2-4"})
        self.assertEqual((reply.status, reply.body, reply.headers["Content-Range"]), (206, b"234", "bytes 2-4/10"))
        self.assertEqual(self.alice.get(self.box, "range", headers={"Range": "bytes=-2"}).body, b"89")
        self.assertStatus(self.alice.get(self.box, "range", headers={"Range": "bytes=10-"}), 416)
        head = self.alice.call("HEAD", self.at + "/content", query={"path": "range"})
        self.assertEqual((head.headers["Content-Length"], head.body), ("10", b""))

    def test_archives_both_ways(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name in ("one.txt", "sub/two.txt"):
                info = tarfile.TarInfo(name)
                info.size = 5
                archive.addfile(info, io.BytesIO(b"hello"))
        self.assertStatus(self.alice.call("PUT", self.at + "/archive", packed.getvalue(), query={"path": "tree"}), 204)
        reply = self.assertStatus(self.alice.call("GET", self.at + "/archive", query={"path": "tree"}), 200)
        with tarfile.open(fileobj=io.BytesIO(reply.body)) as archive:
            self.assertIn("./sub/two.txt", archive.getnames())
        self.assertStatus(self.alice.call("PUT", self.at + "/archive", b"not an archive" * 100), 400, "archive")

    def test_archive_leaves_out_an_unreadable_file(self):
        self.alice.run(self.box, "mkdir -p part; echo hello >part/open; echo x >part/closed; chmod 000 part/closed")
        reply = self.assertStatus(self.alice.call("GET", self.at + "/archive", query={"path": "part"}), 200)
        with tarfile.open(fileobj=io.BytesIO(reply.body)) as archive:
            self.assertEqual(archive.extractfile("./open").read(), b"hello\n")
            self.assertNotIn("./closed", archive.getnames())

    def test_archive_that_cannot_begin_is_an_error(self):
        box = self.alice.create(policy={"process": {"blocked_executables": ["tar"]}})
        reply = self.alice.call("GET", f"/v1/sandboxes/{box}/files/archive")
        self.assertStatus(reply, 400, "archive")
        self.assertIn("tar", reply.json["reason"])

    def test_archive_whose_packer_is_killed_breaks_off(self):
        self.alice.run(self.box, "mkdir -p large; truncate -s 2G large/file")
        response = self.alice.open("GET", self.at + "/archive", query={"path": "large"})
        response.read(1)
        killed = self.alice.run(
            self.box, 'for one in /proc/[0-9]*; do [ "$(cat $one/comm)" = tar ] && kill -9 "${one#/proc/}" && echo killed; done; true')
        self.assertEqual(killed.json["stdout"], "killed\n")
        with self.assertRaises(http.client.IncompleteRead):
            while response.read(1 << 20):
                pass
        response.connection.close()
        self.alice.run(self.box, "rm -r large")

    def stopped_archive(self, **query):
        """An archive whose tar was stopped, with everything read that it wrote before."""
        self.alice.run(self.box, "mkdir -p stopped; truncate -s 2G stopped/file")
        response = self.alice.open("GET", self.at + "/archive", query={"path": "stopped", **query})
        response.read(1)
        self.alice.run(self.box, 'for one in /proc/[0-9]*; do [ "$(cat $one/comm)" = tar ] && kill -STOP "${one#/proc/}"; done; true')
        response.connection.sock.settimeout(1)
        return response

    def tar_runs(self):
        return "tar\n" in self.alice.run(self.box, "cat /proc/[0-9]*/comm 2>/dev/null; true").json["stdout"]

    def test_stopped_archive_ends_with_its_client(self):
        # CONFORMS("R-HTTP-2")
        response = self.stopped_archive()
        with self.assertRaises(TimeoutError):
            while response.read(1 << 20):
                pass
        self.assertTrue(self.tar_runs())
        response.close()
        response.connection.close()
        self.assertTrue(api.wait_until(lambda: not self.tar_runs()))

    def test_stopped_archive_has_a_time_limit(self):
        response = self.stopped_archive(command_timeout=4)
        response.connection.sock.settimeout(30)
        with self.assertRaises(http.client.IncompleteRead):
            while response.read(1 << 20):
                pass
        response.connection.close()
        self.assertTrue(api.wait_until(lambda: not self.tar_runs()))

    def test_paths_that_lead_out_are_refused_in_every_route(self):
        # CONFORMS("R-HTTP-7")
        self.alice.run(self.box, "ln -sfn / root; ln -sfn /etc/passwd passwd; ln -sfn ../../../../etc up; mkfifo pipe")
        for path in ("../x", "../../etc/passwd", "/etc/passwd", "/etc", "a/../../etc/passwd", "/workspace/../etc/passwd", "/proc/self/root"):
            for method, route, body in (
                    ("GET", "/content", None), ("PUT", "/content", b"x"), ("DELETE", "/content", None), ("GET", "/stat", None),
                    ("GET", "", None), ("GET", "/archive", None), ("PUT", "/archive", b"x")):
                reply = self.alice.call(method, self.at + route, body, query={"path": path})
                self.assertIn(reply.status, (400, 403, 404), f"{method} {route} {path}: {reply}")
            for body in ({"from": path, "to": "y"}, {"from": "passwd", "to": path}):
                self.assertIn(self.alice.call("POST", self.at + "/move", body).status, (400, 403, 404), path)
            self.assertIn(self.alice.call("POST", self.at + "/mkdir", {"path": path + "/d"}).status, (400, 403, 404), path)
        for path in ("root/etc/passwd", "passwd", "up/passwd", "root/etc/hostname", "pipe"):
            self.assertIn(self.alice.get(self.box, path).status, (400, 403, 404), path)
        self.alice.put(self.box, "root/tmp/canary", b"x")
        self.assertFalse(os.path.exists("/tmp/canary"))

    def test_watch_reports_changes(self):
        response = self.alice.open("GET", self.at + "/watch", query={"path": "."})
        stream = events(response)
        self.assertEqual(next(stream)[0], "ready")
        self.alice.put(self.box, "seen.txt", b"x")
        for kind, _, data in stream:
            if data.get("path", "").endswith("seen.txt"):
                self.assertEqual(kind, "created")
                break
        response.connection.close()

    def test_watch_is_woken_by_programs_inside(self):
        self.alice.run(self.box, "mkdir -p woken/deep")
        response = self.alice.open("GET", self.at + "/watch", query={"path": "woken"})
        stream = events(response)
        self.assertFalse(next(stream)[2]["polling"])
        times = []
        for number in range(6):  # without watches the tree is compared every two seconds
            begin = time.monotonic()
            self.alice.run(self.box, f"echo x > woken/deep/f{number}")
            while not next(stream)[2]["path"].endswith(f"f{number}"):
                pass
            times.append(time.monotonic() - begin)
        self.assertLess(max(times), 1.8, times)
        response.connection.close()

    def test_watch_of_many_directories_polls(self):
        self.alice.run(self.box, "mkdir many && cd many && seq 1100 | xargs mkdir")
        response = self.alice.open("GET", self.at + "/watch", query={"path": "many"})
        stream = events(response)
        self.assertTrue(next(stream)[2]["polling"])
        self.alice.run(self.box, "echo x > many/1099/f")
        self.assertTrue(any(data["path"].endswith("1099/f") for _, _, data in stream))
        response.connection.close()
        self.alice.run(self.box, "rm -r many")


class History(ApiTest):
    def test_checkpoint_restore_fork_and_diff(self):
        # CONFORMS("R-HTTP-1")
        box = self.alice.create()
        at = f"/v1/sandboxes/{box}"
        self.alice.put(box, "f", b"one\n")
        self.assertEqual(self.assertStatus(self.alice.call("POST", at + "/checkpoints", {"name": "first"}), 201).json["name"], "first")
        self.alice.put(box, "f", b"two\n")
        diff = self.alice.call("GET", at + "/diff", query={"checkpoint": "first", "patch": "true"}).json
        self.assertEqual([(one["path"], one["kind"]) for one in diff["changes"]], [("f", "modified")])
        self.assertIn("+two", diff["changes"][0]["patch"])
        fork = self.assertStatus(self.alice.call("POST", at + "/fork", {"name": "second"}), 201).json["id"]
        self.assertStatus(self.alice.call("POST", at + "/restore", {"checkpoint": "first"}), 204)
        self.assertEqual(self.alice.get(box, "f").body, b"one\n")
        self.assertEqual(self.alice.get(fork, "f").body, b"two\n")
        names = [one["name"] for one in self.alice.call("GET", at + "/checkpoints").json["checkpoints"]]
        self.assertIn("first", names)
        again = self.alice.call("POST", "/v1/sandboxes", {"checkpoint": fork + ":first"})
        self.assertStatus(again, 201)
        self.assertEqual(self.alice.get(again.json["id"], "f").body, b"one\n")
        self.assertStatus(self.alice.call("POST", at + "/commit", {"dry_run": True}), 409, "no_workspace")


class PublishedPorts(ApiTest):
    def test_number_of_published_ports_is_limited(self):
        box = self.alice.create()
        where = f"/v1/sandboxes/{box}/ports"
        statuses = [self.alice.call("POST", where, {"port": 2000 + i}).status for i in range(65)]
        self.assertEqual(statuses, [201] * 64 + [429])
        self.assertStatus(self.alice.call("POST", where, {"port": 2000}), 200)
        self.assertStatus(self.alice.call("DELETE", where + "/2000"), 204)
        self.assertStatus(self.alice.call("POST", where, {"port": 2064}), 201)


class ServerRoutes(ApiTest):
    def test_health_documents_and_figures(self):
        # CONFORMS("R-HTTP-1")
        for path in ("/healthz", "/readyz", "/v1/openapi.json"):
            self.assertStatus(api.Client(self.server, token="", unix=False).call("GET", path), 200)
        document = self.alice.call("GET", "/v1/openapi.json").json
        self.assertEqual(document["openapi"], "3.1.0")
        self.assertIn("caisson_http_requests_total", self.owner.call("GET", "/metrics").body.decode())
        self.assertIn("sandboxes", self.owner.call("GET", "/v1/stats").json)
        self.assertIn("dev", [one["name"] for one in self.alice.call("GET", "/v1/policies").json["profiles"]])
        self.assertIn("policy", self.alice.call("GET", "/v1/policies/bash").json)
        check = self.alice.call("POST", "/v1/policies/check", {"policy": {"resources": {"memory": "1G", "nonsense": 1}}}).json
        self.assertFalse(check["valid"])
        self.assertTrue(self.alice.call("POST", "/v1/policies/check", {"policy": {"resources": {"memory": "1G"}}}).json["valid"])
        self.assertEqual(self.alice.call("GET", "/v1/images").json["images"], [])
        for image in ("/", "/etc", "../x", "nosuch:1"):
            self.assertIn(self.alice.call("POST", "/v1/sandboxes", {"image": image}).status, (400, 403, 404), image)
        self.assertTrue(self.owner.call("GET", "/v1/whoami").json["owner"])

    def test_events_reach_their_owner_only(self):
        # CONFORMS("R-HTTP-4")
        mine, others = self.alice.open("GET", "/v1/events"), self.bob.open("GET", "/v1/events", timeout=2)
        box = self.alice.create(name="watched")
        self.alice.call("DELETE", f"/v1/sandboxes/{box}")
        seen = []
        for kind, _, data in events(mine):
            self.assertEqual(data["sandbox_id"], box)
            seen.append(kind)
            if kind == "sandbox.ended":
                self.assertEqual(data["data"]["reason"], "destroyed")
                break
        self.assertEqual(seen, ["sandbox.created", "sandbox.ended"])
        with self.assertRaises((TimeoutError, socket.timeout)):
            for event in events(others):
                self.fail(f"an event of another tenant: {event}")

    def test_every_request_is_in_the_audit_log_with_its_token(self):
        # CONFORMS("R-HTTP-4")
        box = self.alice.create()
        self.alice.run(box, "true")
        records = self.alice.call("GET", "/v1/audit", query={"sandbox": box, "event": "http_request"}).json["records"]
        operations = [(one["data"]["caller"], one["data"]["operation"]) for one in records]
        self.assertIn(("alice", "runCommand"), operations)
        self.assertEqual(self.bob.call("GET", "/v1/audit", query={"sandbox": box}).json["records"], [])
        done = self.server.caisson("audit", "verify")
        self.assertEqual(done.returncode, 0, done.stderr)


class Ports(ApiTest):
    def test_preview_strips_cookies_and_is_another_origin(self):
        # CONFORMS("R-HTTP-6")
        box = self.alice.create()
        script = ("import http.server\nclass H(http.server.BaseHTTPRequestHandler):\n"
                  " def do_GET(self):\n  self.send_response(200)\n  self.send_header('Set-Cookie','a=b')\n  self.end_headers()\n"
                  "  self.wfile.write(str(self.headers).encode())\n"
                  " def do_POST(self):\n  n=int(self.headers['Content-Length'])\n  self.send_response(201)\n  self.end_headers()\n"
                  "  self.wfile.write(self.rfile.read(n))\n"
                  "http.server.HTTPServer(('127.0.0.1',8000),H).serve_forever()\n")
        self.alice.put(box, "server.py", script.encode())
        self.alice.run(box, ["python3", "server.py"], mode="background")
        port = self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/ports", {"port": 8000}), 201).json
        self.assertIn(f"8000-{box}.localhost", port["preview_url"])
        anyone = api.Client(self.server, token="", unix=False)
        host = {"Host": f"8000-{box}.localhost:{self.server.port}", "Cookie": "secret=1", "Authorization": "Bearer x"}
        deadline = time.monotonic() + 20
        reply = anyone.call("GET", "/path?x=1", headers=host)
        while reply.status == 502 and time.monotonic() < deadline:
            time.sleep(0.1)
            reply = anyone.call("GET", "/path?x=1", headers=host)
        self.assertStatus(reply, 200)
        self.assertNotIn(b"secret", reply.body)
        self.assertNotIn(b"Bearer", reply.body)
        self.assertNotIn("Set-Cookie", reply.headers)
        self.assertEqual(anyone.call("POST", "/", b"x" * 300000, headers=host).body, b"x" * 300000)
        origin = {"Origin": f"http://8000-{box}.localhost:{self.server.port}", "X-Caisson-CSRF": "1"}
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {}, headers=origin), 403, "cross_origin")
        # The API is not served under the name of a preview.
        self.assertNotEqual(anyone.call("GET", "/v1/whoami", headers=dict(host, Authorization=f"Bearer {self.alice.token}")).status, 401)
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}/ports/8000"), 204)
        self.assertStatus(anyone.call("GET", "/", headers=host), 404)


class Templates(ApiTest):
    config = ('[templates.quick]\nprofile = "bash"\nmemory = "256M"\npool = 2\n'
              '[templates.warm]\nprofile = "bash"\npool = 1\nwarm_up = ["sh", "-c", "echo warm > /tmp/w"]\n')

    def test_sandboxes_come_from_the_pool(self):
        # CONFORMS("R-HTTP-1")
        self.assertEqual(self.alice.call("GET", "/v1/templates").json["templates"][0]["name"], "quick")
        box = self.alice.create(template="quick", name="pooled")
        self.assertEqual(self.alice.run(box, "echo hi").json["stdout"], "hi\n")
        self.assertStatus(self.bob.call("GET", f"/v1/sandboxes/{box}"), 404)
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"template": "none"}), 404)
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"template": "quick", "memory": "1G"}), 400)

    def test_warm_up_runs_before_the_first_command(self):
        box = self.alice.create(template="warm")
        self.assertEqual(self.alice.run(box, "cat /tmp/w").json["stdout"], "warm\n")

    def test_refused_callers_do_not_empty_the_pool(self):
        poor = self.server.client("poor", "--sandboxes", "1")
        poor.create()
        before = self.server.owner().call("GET", "/v1/stats").json["pools"]["warm"]
        with concurrent.futures.ThreadPoolExecutor(12) as callers:
            replies = callers.map(lambda _: poor.call("POST", "/v1/sandboxes", {"template": "warm"}), range(24))
        for reply in replies:
            self.assertStatus(reply, 429, "quota_exceeded")
        # Neither fewer nor more: none was created for them.
        self.assertEqual(self.server.owner().call("GET", "/v1/stats").json["pools"]["warm"], before)

    def test_a_failing_warm_up_is_an_error_at_the_start(self):
        with self.assertRaisesRegex(AssertionError, "no module"):
            api.Server(config='[templates.bad]\nprofile = "bash"\npool = 1\nwarm_up = ["sh", "-c", "echo no module >&2; exit 3"]\n')


if __name__ == "__main__":
    api.main()
