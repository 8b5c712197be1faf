#!/usr/bin/env python3
"""Files of a sandbox: single ones, archives, watches."""
import base64
import http.client
import io
import json
import os
import tarfile
import time

import api
from api import ApiTest, events


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

    def test_names_that_are_not_utf8_work_in_every_route(self):
        def base64_of(name):
            return base64.b64encode(name).decode()

        box = self.alice.create()
        at = f"/v1/sandboxes/{box}/files"
        response = self.alice.open("GET", at + "/watch")
        stream = events(response)
        self.assertEqual(next(stream)[0], "ready")
        self.alice.run(box, r"""printf hello > "$(printf 'a\377b')" """)
        kind, _, change = next(stream)
        self.assertEqual((kind, change["path"], change["path_encoding"]), ("created", base64_of(b"a\xffb"), "base64"))
        listed = self.alice.call("GET", at).json["files"]
        self.assertEqual([(one["name"], one["name_encoding"]) for one in listed], [(base64_of(b"a\xffb"), "base64")])
        self.assertEqual(self.alice.get(box, b"a\xffb").body, b"hello")
        self.assertEqual(self.alice.call("GET", at + "/stat", query={"path": b"a\xffb"}).json["size"], 5)
        self.assertStatus(self.alice.put(box, b"a\xffb", b"again"), 200)
        self.assertEqual(self.alice.get(box, b"a\xffb").body, b"again")
        self.assertStatus(self.alice.call("POST", at + "/mkdir", {"path": base64_of(b"d\xfe/e\xfd"), "encoding": "base64"}), 204)
        moved = {"from": base64_of(b"a\xffb"), "to": base64_of(b"d\xfe/e\xfd/f\xfc"), "encoding": "base64"}
        self.assertStatus(self.alice.call("POST", at + "/move", moved), 204)
        self.assertEqual(self.alice.get(box, b"d\xfe/e\xfd/f\xfc").body, b"again")
        packed = self.assertStatus(self.alice.call("GET", at + "/archive", query={"path": b"d\xfe"}), 200).body
        self.assertStatus(self.alice.call("PUT", at + "/archive", packed, query={"path": b"g\xfb"}), 204)
        self.assertEqual(self.alice.get(box, b"g\xfb/e\xfd/f\xfc").body, b"again")
        self.assertStatus(self.alice.call("DELETE", at + "/content", query={"path": b"d\xfe", "recursive": "true"}), 204)
        self.assertEqual([one["name"] for one in self.alice.call("GET", at).json["files"]], [base64_of(b"g\xfb")])
        response.connection.close()

    def test_base64_paths_are_checked(self):
        def base64_of(name):
            return base64.b64encode(name).decode()

        self.alice.put(self.box, "stays", b"x")
        for path in ("%%%", base64_of(b"a\0b"), base64_of(b"stays\0")):
            for route, body in (("/mkdir", {"path": path}), ("/move", {"from": path, "to": "eA=="}),
                                ("/move", {"from": base64_of(b"stays"), "to": path})):
                self.assertStatus(self.alice.call("POST", self.at + route, {**body, "encoding": "base64"}), 400, "invalid_body")
        out = base64_of(b"../../etc/passwd")
        self.assertIn(self.alice.call("POST", self.at + "/mkdir", {"path": out, "encoding": "base64"}).status, (400, 403, 404))
        self.assertIn(self.alice.call("POST", self.at + "/move", {"from": base64_of(b"stays"), "to": out, "encoding": "base64"}).status,
                      (400, 403, 404))
        self.assertEqual(self.alice.get(self.box, "stays").body, b"x")

    def test_range_request_returns_that_part(self):
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
        """Returns an archive response whose tar is stopped, after reading everything that tar wrote."""
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

    def test_archive_breaks_off_when_the_server_stops(self):
        server = api.Server()
        self.addCleanup(server.close)
        for client in (server.owner(), server.client("archive")):
            box = client.create()
            client.run(box, "mkdir stopped; truncate -s 2G stopped/file")
            response = client.open("GET", f"/v1/sandboxes/{box}/files/archive", query={"path": "stopped"})
            response.read(1)
            client.run(box, 'for one in /proc/[0-9]*; do [ "$(cat $one/comm)" = tar ] && kill -STOP "${one#/proc/}"; done; true')
            response.connection.sock.settimeout(1)
            with self.assertRaises(TimeoutError):
                while response.read(1 << 20):
                    pass
            # On the socket: after a timeout, the response object cannot continue to read.
            sock = response.fp.raw._sock
            sock.settimeout(30)
            server.process.terminate()
            rest = api.receive_all(sock)
            self.assertNotIn(b"0\r\n\r\n", rest[-16:])
            response.connection.close()
            server.process.wait(30)
            server.start()

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

    def test_planted_links_that_lead_out_are_path_escapes_in_every_route(self):
        # CONFORMS("R-HTTP-7")
        box = self.alice.create()
        at = f"/v1/sandboxes/{box}/files"
        self.alice.run(box, "mkdir d; echo kept > d/a; ln -s / rootl; ln -s /tmp tmpl; ln -s ../tmp up; ln -s tmpl second; ln -s rootl/tmp third")
        everything = "find /workspace /tmp | sort; cat d/a"
        before = self.alice.run(box, everything).json["stdout"]
        for path in ("rootl/etc/passwd", "tmpl/x", "up/x", "second/x", "third/x", "d/../tmpl/x", "/workspace/tmpl/x", "tmpl/x/y"):
            for method, route, body in (
                    ("GET", "/content", None), ("PUT", "/content", b"x"), ("DELETE", "/content", None), ("GET", "/stat", None),
                    ("GET", "", None), ("GET", "/archive", None), ("PUT", "/archive", b"x")):
                reply = self.alice.call(method, at + route, body, query={"path": path})
                self.assertStatus(reply, 403, "path_escapes")
            for body in ({"from": path, "to": "y"}, {"from": "d/a", "to": path}):
                self.assertStatus(self.alice.call("POST", at + "/move", body), 403, "path_escapes")
            self.assertStatus(self.alice.call("POST", at + "/mkdir", {"path": path}), 403, "path_escapes")
        for path in ("rootl", "tmpl", "up", "second"):
            self.assertStatus(self.alice.call("GET", at, query={"path": path}), 403, "path_escapes")
            self.assertStatus(self.alice.call("GET", at + "/archive", query={"path": path}), 403, "path_escapes")
        self.assertEqual(self.alice.run(box, everything).json["stdout"], before)
        records = self.owner.call("GET", "/v1/audit", query={"sandbox": box, "event": "policy_violation", "limit": 1000}).json["records"]
        self.assertTrue(any("leads out of /workspace" in json.dumps(one["data"]) for one in records), records[:3])

    def test_links_that_stay_inside_are_followed(self):
        box = self.alice.create()
        at = f"/v1/sandboxes/{box}/files"
        self.alice.run(box, "mkdir -p d/e; echo kept > d/a; ln -s d rel; ln -s /workspace/d abs; ln -s ../d d/up; ln -s /workspace all")
        for path in ("rel/a", "abs/a", "d/up/a", "all/rel/a", "abs/e/../a"):
            self.assertEqual(self.assertStatus(self.alice.get(box, path), 200).body, b"kept\n", path)
        self.assertStatus(self.alice.put(box, "abs/new/b", b"x"), 200)
        self.assertStatus(self.alice.call("POST", at + "/mkdir", {"path": "all/m"}), 204)
        self.assertStatus(self.alice.call("POST", at + "/move", {"from": "rel/new/b", "to": "abs/e/c"}), 204)
        self.assertEqual(self.alice.run(box, "cat d/e/c; find . -name workspace; ls -d m").json["stdout"], "xm\n")

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
        for number in range(6):  # without inotify watches the tree is compared every two seconds
            begin = time.monotonic()
            self.alice.run(self.box, f"echo x > woken/deep/f{number}")
            while not next(stream)[2]["path"].endswith(f"f{number}"):
                pass
            times.append(time.monotonic() - begin)
        self.assertLess(max(times), 1.8, times)
        response.connection.close()

    # Each path has about 3.7 KB, in JSON six times as much.
    LONG_PATHS = """
import os
for _ in range(14):
    os.mkdir(chr(1) * 250)
    os.chdir(chr(1) * 250)
for number in range({}):
    open("%05d" % number + chr(1) * 245, "w").close()
"""

    def test_watch_sends_many_changes_in_small_pieces(self):
        count = 1500
        box = self.alice.create()
        self.assertEqual(self.alice.run(box, ["python3", "-c", self.LONG_PATHS.format(count)]).json["exit_code"], 0)
        sock = self.server.raw(60)
        sock.sendall(f"GET /v1/sandboxes/{box}/files/watch HTTP/1.1\r\nHost: localhost\r\n"
                     f"Authorization: Bearer {self.alice.token}\r\n\r\n".encode())
        stream = sock.makefile("rb")
        while stream.readline() != b"\r\n":
            pass
        deleted, sizes, removed = 0, [], False
        while deleted < count:
            sizes.append(int(stream.readline(), 16))
            piece = stream.read(sizes[-1] + 2)
            deleted += piece.count(b"event: deleted\n")
            if not removed:
                removed = True
                self.assertEqual(self.alice.run(box, "rm -r */*").json["exit_code"], 0)
        self.assertLess(max(sizes), 64 << 10)
        self.assertGreater(sum(sizes), 20_000_000)
        sock.close()

    def test_watch_of_too_many_long_paths_is_an_error(self):
        box = self.alice.create()
        self.assertEqual(self.alice.run(box, ["python3", "-c", self.LONG_PATHS.format(2500)]).json["exit_code"], 0)
        response = self.alice.open("GET", f"/v1/sandboxes/{box}/files/watch")
        kind, _, data = next(events(response))
        self.assertEqual(kind, "error")
        self.assertIn("8 MiB", data["reason"])
        response.connection.close()

    def test_memory_of_watches_is_counted(self):
        box = self.bob.create()
        self.assertEqual(self.bob.run(box, ["python3", "-c", self.LONG_PATHS.format(2200)]).json["exit_code"], 0)
        watches = [self.bob.open("GET", f"/v1/sandboxes/{box}/files/watch") for _ in range(8)]
        kinds = [next(events(one)) for one in watches]
        # Two lists of 8 MiB each, of 128 MiB for all.
        self.assertEqual(sorted(kind for kind, _, _ in kinds), ["error"] + ["ready"] * 7)
        self.assertIn("too much memory", next(data["reason"] for kind, _, data in kinds if kind == "error"))
        for one in watches:
            one.connection.close()

    def test_watch_of_many_directories_polls(self):
        self.alice.run(self.box, "mkdir many && cd many && seq 1100 | xargs mkdir")
        response = self.alice.open("GET", self.at + "/watch", query={"path": "many"})
        stream = events(response)
        self.assertTrue(next(stream)[2]["polling"])
        self.alice.run(self.box, "echo x > many/1099/f")
        self.assertTrue(any(data["path"].endswith("1099/f") for _, _, data in stream))
        response.connection.close()
        self.alice.run(self.box, "rm -r many")


if __name__ == "__main__":
    api.main()
