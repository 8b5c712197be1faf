#!/usr/bin/env python3
"""Commands of a sandbox: results, streams, input, signals, terminals."""
import base64
import json
import socket
import struct
import time
import urllib.parse

import api
from api import ApiTest, events


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
        """Opens a terminal; returns its socket, and a function that returns the next frame as (type, payload)."""
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

    def test_malformed_frames_close_the_terminal_with_the_code_of_the_standard(self):
        too_big = bytes([0x82, 0xff]) + struct.pack(">Q", 1 << 40)
        unmasked = bytes([0x82, 1]) + b"x"
        continuation = self.frame_of(b"x", kind=0)
        for sent, code in ((unmasked, 1002), (continuation, 1002), (too_big, 1009)):
            sock, frame = self.terminal("cat")
            sock.sendall(sent)
            kind, data = frame()
            while kind != 8:
                kind, data = frame()
            sock.close()
            self.assertEqual(struct.unpack(">H", data), (code,), sent)


if __name__ == "__main__":
    api.main()
