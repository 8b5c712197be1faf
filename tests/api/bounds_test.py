#!/usr/bin/env python3
"""Memory, streams and connections of one token are bounded: it cannot exhaust the server for others."""
import json
import os
import shutil
import socket
import tempfile
import threading
import time
import unittest

import api
from api import ApiTest


class EventBounds(ApiTest):
    def events_of(self, caller, count):
        response = caller.open("GET", "/v1/events", query={"after": 0})
        stream = api.events(response)
        found = [next(stream) for _ in range(count)]
        response.connection.close()
        return [(kind, data["data"]) for kind, _, data in found]

    def test_event_has_no_text_that_is_not_a_host(self):
        """Events stay in memory, 1024 of each token, so a host must not be as large as a body."""
        carol = self.server.client("carol")
        box = carol.create()
        at = f"/v1/sandboxes/{box}/network"
        for host in ("a" * 500_000, "not a host", "", "a." * 200 + "example"):
            for action in ("remove", "deny", "allow"):
                self.assertStatus(carol.call("POST", at, {"action": action, "host": host}), 400, "invalid")
        unchanged = self.assertStatus(carol.call("POST", at, {"action": "remove", "host": "example.org"}), 200)
        self.assertEqual(unchanged.json["allowed_hosts"], [])
        carol.call("POST", f"/v1/sandboxes/{box}/checkpoints", {"name": "last"})
        self.assertEqual(self.events_of(carol, 2), [("sandbox.created", {"name": ""}), ("checkpoint.created", {"name": "last"})])

    def test_removed_host_is_an_event(self):
        box = self.owner.create()
        at = f"/v1/sandboxes/{box}/network"
        for action in ("allow", "remove"):
            self.assertStatus(self.owner.call("POST", at, {"action": action, "host": "example.org"}), 200)
        response = self.owner.open("GET", "/v1/events", query={"after": 0})
        found = []
        for kind, _, data in api.events(response):
            if (kind, data["sandbox_id"]) == ("network.changed", box):
                found.append(data["data"]["action"])
            if len(found) == 2:
                break
        response.connection.close()
        self.assertEqual(found, ["allow", "remove"])

    def test_one_token_has_few_streams_of_events(self):
        eve = self.server.client("eve", "--scopes", "read")
        streams = [eve.open("GET", "/v1/events") for _ in range(17)]
        self.addCleanup(lambda: [one.connection.close() for one in streams])
        self.assertEqual([one.status for one in streams], [200] * 16 + [429])
        self.assertEqual(json.loads(streams[16].read())["code"], "too_many_streams")
        other = self.bob.open("GET", "/v1/events")
        self.assertEqual(other.status, 200)
        other.connection.close()
        streams[0].connection.close()
        again = lambda: eve.open("GET", "/v1/events")
        self.assertTrue(api.wait_until(lambda: again().status == 200))


class ListBounds(ApiTest):
    def test_list_of_commands_has_the_beginning_of_long_arguments(self):
        """Each command may have 1 MiB of arguments, and there are many of them."""
        box = self.alice.create()
        long = ["true", "ä" * 50_000] + ["b" * 110_000] * 7
        started = [self.alice.run(box, long, mode="background").json["id"] for _ in range(12)]
        self.alice.run(box, ["true", "short"], mode="background")
        reply = self.assertStatus(self.alice.call("GET", f"/v1/sandboxes/{box}/commands"), 200)
        self.assertLess(len(reply.body), 12 * 16_000)
        self.assertIs(reply.json["truncated"], False)
        listed = reply.json["commands"]
        self.assertEqual([one["id"] for one in listed], [f"c{number}" for number in range(1, 14)])
        for one in listed[:12]:
            self.assertEqual((one["args_truncated"], one["args"][0], set(one["args"][1]), len(one["args"])), (True, "true", {"ä"}, 2))
            self.assertGreater(len(one["args"][1].encode()), 4000)
        self.assertEqual((listed[12]["args"], listed[12].get("args_truncated")), (["true", "short"], None))
        whole = self.alice.call("GET", f"/v1/sandboxes/{box}/commands/{started[0]}").json
        self.assertEqual((whole["args"], whole.get("args_truncated")), (long, None))

    def test_list_of_sandboxes_has_pages(self):
        dave = self.server.client("dave")
        boxes = [dave.create(name=str(number), labels={"x": "y" * 200}) for number in range(3)]
        first = dave.call("GET", "/v1/sandboxes", query={"limit": 2}).json
        rest = dave.call("GET", "/v1/sandboxes", query={"limit": 2, "cursor": first["next_cursor"]}).json
        self.assertEqual(sorted(one["id"] for one in first["sandboxes"] + rest["sandboxes"]), sorted(boxes))
        self.assertIsNone(rest["next_cursor"])


class CommitBounds(ApiTest):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="ca-ws-", dir="/tmp")
        os.chmod(cls.directory, 0o755)
        cls.options = ["--allow-workspace", cls.directory]
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        super().setUpClass()

    def test_lists_of_a_commit_are_cut_and_the_rest_is_counted(self):
        box = self.alice.create(workspace=self.directory)
        texts, others, tail = 24_000, 9_000, "-" * 220  # a token may not commit the others
        made = self.alice.run(box, f"mkdir many && cd many && (seq -f '%06.0f{tail}.txt' {texts}; seq -f '%06.0f{tail}' {others}) | xargs touch")
        self.assertEqual(made.json["exit_code"], 0, made)
        reply = self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/commit", {"dry_run": True}, timeout=120), 200)
        report = reply.json
        listed = {name: len(report[name]) for name in ("applied", "held", "conflicts", "skipped", "kept")}
        self.assertLess(len(reply.body), 11 << 20)
        self.assertEqual({name: count + report[f"{name}_not_listed"] for name, count in listed.items()},
                         {"applied": texts + 1, "held": others, "conflicts": 0, "skipped": 0, "kept": 0})
        self.assertTrue(1000 < listed["applied"] < texts and 1000 < listed["held"] < others, listed)
        small = {"dry_run": True, "paths": [f"many/000001{tail}.txt"]}
        small = self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/commit", small), 200).json
        self.assertEqual(small["applied_not_listed"], 0)
        self.assertNotEqual(small["digest"], report["digest"])


class ConnectionBounds(ApiTest):
    def memory(self):
        status = api.read_text(f"/proc/{self.server.process.pid}/status")
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def test_bytes_after_the_request_of_a_stream_are_not_kept(self):
        box = self.alice.create()
        command = self.alice.run(box, "sleep 300", mode="background").json["id"]
        request = f"GET /v1/sandboxes/{box}/commands/{command}/output HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.alice.token}\r\n\r\n"
        streams = []
        for _ in range(200):
            sock = self.server.raw()
            self.addCleanup(sock.close)
            sock.sendall(request.encode())
            self.assertIn(b"200 OK", sock.recv(4096))
            streams.append(sock)
        before = self.memory()
        for sock in streams:
            sock.setblocking(False)
            for _ in range(8):
                try:
                    sock.send(b"x" * (64 << 10))
                except BlockingIOError:
                    break
        time.sleep(3)
        self.assertLess(self.memory() - before, 24 << 20)
        self.assertStatus(self.bob.call("GET", "/v1/sandboxes"), 200)

    def test_slow_readers_of_archives_leave_threads_for_others(self):
        slow = []

        def read_slowly(number):
            caller = self.server.client(f"slow{number}")
            box = caller.create()
            caller.run(box, "truncate -s 1G large")
            for _ in range(8):
                slow.append(caller.open("GET", f"/v1/sandboxes/{box}/files/archive", timeout=30))

        boxes = [(caller, caller.create()) for caller in (self.owner, self.bob)]
        readers = [threading.Thread(target=read_slowly, args=(number,)) for number in range(8)]
        for one in readers:
            one.start()
        for one in readers:
            one.join()
        self.addCleanup(lambda: [one.connection.close() for one in slow])
        self.assertEqual([one.status for one in slow], [200] * 64)
        for caller, box in boxes:
            self.assertStatus(caller.call("GET", f"/v1/sandboxes/{box}/files/archive", timeout=20), 200)


class IdleConnections(unittest.TestCase):
    def test_idle_connections_of_one_token_leave_room_for_others(self):
        """All clients on loopback are one peer, with 258 connections here."""
        with tempfile.TemporaryDirectory() as directory:
            program = os.path.join(directory, "few")
            with open(program, "w") as file:
                file.write(f'#!/bin/sh\nulimit -n 1200\nexec {os.path.abspath(api.CAISSON)} "$@"\n')
            os.chmod(program, 0o755)
            server = api.Server(program=program)
            self.addCleanup(server.close)
        alice, bob = server.client("alice", "--scopes", "read"), server.client("bob")

        def ask(sock, caller, path="/v1/whoami"):
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {caller.token}\r\n\r\n".encode())
            return sock.recv(4096)[:12]

        def connect():
            sock = server.raw()
            self.addCleanup(sock.close)
            return sock

        early, stream = connect(), connect()
        self.assertEqual((ask(early, bob), ask(stream, alice, "/v1/events")), (b"HTTP/1.1 200",) * 2)
        idle = []
        for _ in range(300):
            idle.append(connect())
            self.assertEqual(ask(idle[-1], alice), b"HTTP/1.1 200")
        for _ in range(3):
            self.assertEqual(bob.call("GET", "/v1/whoami").status, 200)
        # Neither an idle connection of a caller with few, nor a request in progress was closed for that.
        self.assertEqual(ask(early, bob), b"HTTP/1.1 200")
        stream.settimeout(0.5)
        try:
            self.assertNotEqual(stream.recv(4096), b"")
        except socket.timeout:
            pass
        self.assertEqual(ask(idle[-1], alice), b"HTTP/1.1 200")
        self.assertEqual(idle[0].recv(1), b"")


if __name__ == "__main__":
    api.main()
