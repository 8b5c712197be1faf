#!/usr/bin/env python3
"""Token A cannot access anything of token B, and every attempt is recorded. Scopes, quotas, approvals, browsers."""
import ctypes
import http.client
import json
import os
import shutil
import tempfile
import time

import api
from api import ApiTest, Client


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def sample(schema):
    kind = schema.get("type")
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}[kind]


class Tenants(ApiTest):
    def test_nothing_of_another_tenant_can_be_reached(self):
        # CONFORMS("R-HTTP-4")
        box = self.bob.create(name="private")
        command = self.bob.run(box, "sleep 100", mode="background").json["id"]
        before = self.bob.call("GET", f"/v1/sandboxes/{box}").json
        tried = 0
        for method, path, operation in operations(self.alice.call("GET", "/v1/openapi.json").json):
            if not path.startswith("/v1/sandboxes/{id}"):
                continue
            target = path.replace("{id}", box).replace("{command}", command).replace("{port}", "8000")
            query = {one["name"]: sample(one["schema"]) for one in operation.get("parameters", []) if one["in"] == "query" and one["required"]}
            body, headers = None, {}
            content = operation.get("requestBody", {}).get("content", {})
            if "application/json" in content:
                schema = content["application/json"]["schema"]
                body = {name: sample(schema["properties"][name]) for name in schema.get("required", [])}
                if operation["operationId"] == "runCommand":
                    body = {"command": "touch /workspace/owned"}
            elif content:
                body = b"x"
            if operation["operationId"] == "openTerminal":
                headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
            reply = self.alice.call(method, target, body, headers=headers, query=query)
            self.assertStatus(reply, 404, "not_found")
            tried += 1
        self.assertGreater(tried, 25)
        self.assertNotIn(box, [one["id"] for one in self.alice.call("GET", "/v1/sandboxes").json["sandboxes"]])
        after = self.bob.call("GET", f"/v1/sandboxes/{box}").json
        self.assertEqual((after["state"], after["sandbox_timeout"]), (before["state"], before["sandbox_timeout"]))
        self.assertEqual(self.bob.get(box, "owned").status, 404)
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"checkpoint": box}), 404)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            refusals = self.owner.call("GET", "/v1/audit", query={"event": "http_refused", "sandbox": box, "limit": 1000}).json["records"]
            if len(refusals) >= tried - 1:  # HEAD and the list have none
                break
            time.sleep(0.2)
        self.assertGreaterEqual(len(refusals), tried - 1)
        self.assertGreaterEqual([one["data"]["caller"] for one in refusals].count("alice"), tried - 1)

    def test_unknown_and_foreign_sandboxes_look_the_same(self):
        box = self.bob.create()
        foreign = self.alice.call("GET", f"/v1/sandboxes/{box}")
        unknown = self.alice.call("GET", "/v1/sandboxes/" + box[:-4] + "zzzz")
        self.assertEqual(foreign.status, unknown.status)
        self.assertEqual({**foreign.json, "reason": ""}, {**unknown.json, "reason": ""})

    def test_part_of_an_id_reaches_no_file(self):
        """Otherwise the response time would show whether the id of a sandbox begins with these characters."""
        box = self.alice.create()
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self.addCleanup(os.close, watch)
        opened = 0x20  # IN_OPEN
        self.assertGreater(libc.inotify_add_watch(watch, f"{self.server.home}/sessions".encode(), opened), 0)

        def drain():
            try:
                return bool(os.read(watch, 65536))
            except BlockingIOError:
                return False

        def is_read_each_time(request):
            """The server and the sandboxes also open files at times, but not during each of 20 requests."""
            for _ in range(20):
                drain()
                self.assertEqual(request(), 404)
                if not drain():
                    return False
            return True

        def preview(name):
            return self.bob.call("GET", "/", headers={"Host": f"80-{name}.localhost"}).status

        for part in [box[:length] for length in range(4, len(box))]:
            self.assertFalse(is_read_each_time(lambda: self.bob.call("GET", f"/v1/sandboxes/{part}").status), part)
            self.assertFalse(is_read_each_time(lambda: preview(part)), part)
        drain()
        self.assertEqual(self.owner.call("GET", "/v1/sandboxes").status, 200)
        self.assertTrue(os.read(watch, 65536))  # the test can detect an access

    def test_scopes_expiry_and_revocation(self):
        # CONFORMS("R-HTTP-3")
        reader = self.server.client("reader", "--scopes", "read")
        self.assertStatus(reader.call("GET", "/v1/sandboxes"), 200)
        self.assertStatus(reader.call("POST", "/v1/sandboxes", {}), 403, "scope")
        self.assertStatus(reader.call("GET", "/v1/stats"), 403, "scope")
        short = self.server.client("short", "--expires", "1s")
        time.sleep(1.2)
        self.assertStatus(short.call("GET", "/v1/sandboxes"), 401)
        gone = self.server.client("gone")
        self.assertStatus(gone.call("GET", "/v1/sandboxes"), 200)
        self.assertEqual(self.server.caisson("token", "revoke", "gone").returncode, 0)
        self.assertStatus(gone.call("GET", "/v1/sandboxes"), 401)
        listed = json.loads(self.server.caisson("token", "list", "--json").stdout)
        self.assertIn("reader", [one["name"] for one in listed])
        self.assertNotIn("gone", [one["name"] for one in listed])
        with open(os.path.join(self.server.home, "server/tokens.json")) as file:
            self.assertNotIn(reader.token, file.read())

    def test_token_list_shows_quotas_and_expiry(self):
        self.server.token("bounded", "--scopes", "read", "--sandboxes", "3", "--cpus", "1.5", "--memory", "1G", "--disk", "500M",
                          "--rate", "20", "--expires", "30d")
        self.server.token("boundless")
        self.server.token("short", "--expires", "1s")
        listed = {one["name"]: one for one in json.loads(self.server.caisson("token", "list", "--json").stdout)}
        bounded = listed["bounded"]
        quotas = {"sandboxes": 3, "cpus": 1.5, "memory": 1 << 30, "disk": 500 << 20, "rate": 20}
        self.assertEqual({name: bounded.get(name) for name in quotas}, quotas)
        self.assertAlmostEqual(bounded["expires"], time.time() + 30 * 86400, delta=60)
        self.assertEqual(listed["boundless"]["expires"], 0)
        while time.time() < listed["short"]["expires"] + 1:
            time.sleep(0.1)
        lines = {line.split("  ")[1]: line.split("  ")[2:] for line in self.server.caisson("token", "list").stdout.splitlines()}
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(bounded["expires"]))
        self.assertEqual(lines["bounded"], ["read", "sandboxes 3, cpus 1.5, memory 1 GiB, disk 500 MiB, rate 20/s", "expires " + date])
        self.assertEqual(lines["boundless"], ["read,exec", "no quotas", "never expires"])
        self.assertTrue(lines["short"][2].startswith("expired "), lines["short"])

    def test_revocation_ends_streams_archives_and_terminals(self):
        # CONFORMS("R-HTTP-3")
        leaver = self.server.client("leaver")
        box = leaver.create()
        where = f"/v1/sandboxes/{box}"
        leaver.run(box, "truncate -s 2G large")
        command = leaver.run(box, "sleep 1000", mode="background").json["id"]
        streams = [leaver.open("GET", path, timeout=30) for path in
                   ("/v1/events", f"{where}/commands/{command}/output", f"{where}/files/watch", "/v1/audit/stream")]
        archive = leaver.open("GET", f"{where}/files/archive", timeout=30)
        self.assertEqual([one.status for one in (*streams, archive)], [200] * 5)
        terminal = leaver.open("GET", f"{where}/pty", timeout=30, query={"command": "echo ready; sleep 1000"}, headers={
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        self.assertEqual(terminal.status, 101)
        mine = self.alice.open("GET", "/v1/events", timeout=30)
        self.assertEqual(self.server.caisson("token", "revoke", "leaver").returncode, 0)
        end = time.monotonic() + 25

        def read_all(read):  # heartbeats never stop, so a timeout of the socket is not enough
            pieces = []
            while piece := read():
                self.assertLess(time.monotonic(), end, pieces)
                pieces.append(piece)
            return b"".join(pieces)

        for one in streams:
            self.assertIn(b"revoked", read_all(one.readline))
        with self.assertRaises(http.client.IncompleteRead):
            read_all(lambda: archive.read(1 << 20))
        read_all(lambda: terminal.fp.read1(4096))
        # The command of the terminal has ended; the command in the background belongs to the sandbox and still runs.
        count = lambda: self.owner.run(box, "cat /proc/[0-9]*/comm | grep -c sleep").json["stdout"]
        self.assertTrue(api.wait_until(lambda: count() == "1\n"), count())
        self.alice.create()
        self.assertIn(b"sandbox.created", mine.fp.readline() + mine.fp.readline() + mine.fp.readline())
        for one in (*streams, archive, terminal, mine):
            one.connection.close()

    def test_no_token_no_service(self):
        # CONFORMS("R-HTTP-3")
        for token in (None, "", "cst_" + "a" * 32, "x"):
            caller = Client(self.server, token=token, unix=False)
            self.assertStatus(caller.call("GET", "/v1/sandboxes"), 401)
            self.assertStatus(caller.call("GET", "/v1/nonsense"), 401)

    def test_admins_see_all_but_are_not_the_owner(self):
        admin = self.server.client("admin", "--scopes", "read,exec,admin")
        box = self.bob.create()
        self.assertStatus(admin.call("GET", f"/v1/sandboxes/{box}"), 200)
        self.assertStatus(admin.call("POST", "/v1/approvals/ap-x", {"decision": "allow"}), 403, "scope")

    def test_sandboxes_of_the_owner_do_not_exist_for_admins(self):
        """A session of the command line may write to host files, and no approval is needed for that."""
        admin = self.server.client("chief", "--scopes", "read,exec,admin")
        real = tempfile.mkdtemp(prefix="ca-own-", dir="/tmp")
        self.addCleanup(shutil.rmtree, real, True)
        made = self.server.caisson("session", "create", "--json", "--workspace", ":none", "--rw", real)
        self.assertEqual(made.returncode, 0, made.stderr)
        session, mine = json.loads(made.stdout)["id"], self.owner.create()
        theirs = self.bob.create()
        for box in (session, mine):
            self.assertStatus(admin.run(box, f"touch {real}/planted"), 404, "not_found")
            self.assertStatus(admin.call("GET", f"/v1/sandboxes/{box}"), 404)
            self.assertStatus(admin.call("POST", "/v1/sandboxes", {"checkpoint": box}), 404)
            self.assertStatus(admin.call("DELETE", f"/v1/sandboxes/{box}"), 404)
            self.assertStatus(self.owner.call("GET", f"/v1/sandboxes/{box}"), 200)
        self.assertEqual(os.listdir(real), [])
        listed = [one["id"] for one in admin.call("GET", "/v1/sandboxes").json["sandboxes"]]
        self.assertTrue(theirs in listed and session not in listed and mine not in listed, listed)
        records = lambda caller: caller.call("GET", "/v1/audit", query={"limit": 10_000}).json["records"]
        self.assertIn(session, [one["sandbox_id"] for one in records(self.owner)])
        seen = records(admin)
        self.assertIn(theirs, [one["sandbox_id"] for one in seen])
        self.assertNotIn("owner", [one["data"].get("caller_id") for one in seen])
        for box in (session, mine):  # only what admins asked for
            self.assertEqual({one["data"].get("caller") for one in seen if one["sandbox_id"] == box} - {"chief"}, set())
        response = admin.open("GET", "/v1/events", query={"after": 0})
        for _, _, event in api.events(response):
            self.assertNotIn(event["sandbox_id"], (session, mine))
            if event["sandbox_id"] == theirs:
                break
        response.connection.close()

    def test_request_above_quota_or_rate_is_429(self):
        # CONFORMS("R-HTTP-3")
        caller = self.server.client("small", "--sandboxes", "2", "--memory", "512M")
        caller.create()
        second = caller.create()
        self.assertStatus(caller.call("POST", "/v1/sandboxes", {}), 429, "quota_exceeded")
        self.assertStatus(caller.call("DELETE", f"/v1/sandboxes/{second}"), 204)
        self.assertStatus(caller.call("POST", "/v1/sandboxes", {"memory": "400M"}), 429, "quota_exceeded")
        caller.create()
        slow = self.server.client("slow", "--rate", "1")
        statuses = [slow.call("GET", "/v1/sandboxes").status for _ in range(6)]
        self.assertIn(429, statuses)
        self.assertEqual(statuses[0], 200)

    def test_a_token_gets_nothing_of_the_host(self):
        # CONFORMS("R-HTTP-5")
        for fields in ({"workspace": "/"}, {"workspace": "/nonexistent"}, {"policy": {"network": {"mode": "host"}}},
                       {"policy": {"filesystem": {"read_only": ["/etc"]}}}, {"policy": {"filesystem": {"read_write": ["/tmp"]}}},
                       {"policy": {"network": {"host_ports": ["22"]}}}, {"policy": {"isolation": {"level": "none"}}},
                       {"policy": {"filesystem": {"workspace": {"mode": "rw"}}}}, {"policy": {"environment": {"pass": ["HOME"]}}},
                       {"policy": {"syscalls": {"allow": ["ptrace"]}}}, {"policy": {"syscalls": {"oci_profile": "/etc/passwd"}}},
                       {"policy": {"network": {"upstream_proxy": "http://127.0.0.1:1"}}}, {"policy": {"process": {"pass_descriptors": ["3"]}}},
                       {"policy": {"network": {"dns_servers": ["127.0.0.1"]}}}, {"policy": {"filesystem": {"root": "/"}}},
                       {"policy": {"audit": {"enabled": False}}}, {"policy": {"isolation": {"user": "root"}}},
                       {"policy": {"resources": {"output": "1G"}}}):
            reply = self.alice.call("POST", "/v1/sandboxes", fields)
            self.assertIn(reply.status, (400, 403), f"{fields}: {reply}")
        self.assertEqual(self.alice.call("POST", "/v1/sandboxes", {"workspace": "/"}).json["reason"],
                         self.alice.call("POST", "/v1/sandboxes", {"workspace": "/nonexistent"}).json["reason"])
        box = self.alice.create()
        self.assertEqual(self.alice.run(box, "ls /workspace").json["stdout"], "")

    def test_one_caller_cannot_have_all_streams(self):
        box = self.alice.create()
        watches = [self.alice.open("GET", f"/v1/sandboxes/{box}/files/watch") for _ in range(9)]
        self.assertEqual([one.status for one in watches], [200] * 8 + [429])
        other = self.bob.create()
        mine = self.bob.open("GET", f"/v1/sandboxes/{other}/files/watch")
        self.assertEqual(mine.status, 200)
        for one in (*watches, mine):
            one.connection.close()

    def test_caches_are_not_shared_between_tenants(self):
        # CONFORMS("R-HTTP-4")
        policy = {"extends": "dev", "filesystem": {"tmpfs": {"/cache": {"cache": "common"}}}}
        mine, again, other = (caller.create(policy=policy) for caller in (self.alice, self.alice, self.bob))
        self.assertEqual(self.alice.run(mine, "echo x > /cache/planted").json["exit_code"], 0)
        self.assertNotEqual(self.bob.run(other, "cat /cache/planted").json["exit_code"], 0)
        caches = os.listdir(os.path.join(self.server.home, "caches")) if os.path.isdir(os.path.join(self.server.home, "caches")) else []
        if caches:  # if there are caches on disk, all sandboxes of a token share them
            self.assertEqual(self.alice.run(again, "cat /cache/planted").json["stdout"], "x\n")
            self.assertNotIn("shared-common", caches)

    def test_revoked_token_leaves_no_cache(self):
        passing = self.server.client("passing")
        box = passing.create(policy={"extends": "dev", "filesystem": {"tmpfs": {"/cache": {"cache": "common"}}}})
        self.assertEqual(passing.run(box, "echo x > /cache/planted").json["exit_code"], 0)
        tokens = json.loads(self.server.caisson("token", "list", "--json").stdout)
        own = next(one["id"] for one in tokens if one["name"] == "passing")
        directory = os.path.join(self.server.home, "caches")
        caches = lambda: [one for one in os.listdir(directory) if own in one] if os.path.isdir(directory) else []
        before = caches()
        self.assertEqual(self.server.caisson("token", "revoke", "passing").returncode, 0)
        self.assertEqual(caches(), [], f"before: {before}")

    def test_approvals_are_the_owners(self):
        # CONFORMS("R-HTTP-5")
        box = self.alice.create()
        refused = self.alice.call("POST", f"/v1/sandboxes/{box}/network", {"action": "allow", "host": "example.org"})
        self.assertStatus(refused, 403, "approval_required")
        pending = refused.json["approvals"][0]["id"]
        self.assertStatus(self.alice.call("POST", f"/v1/approvals/{pending}", {"decision": "allow"}), 403, "scope")
        self.assertEqual(self.bob.call("GET", "/v1/approvals").json["approvals"], [])
        self.assertStatus(self.bob.call("GET", f"/v1/approvals/{pending}"), 404)
        self.assertIn(pending, [one["id"] for one in self.owner.call("GET", "/v1/approvals").json["approvals"]])
        self.assertStatus(self.owner.call("POST", f"/v1/approvals/{pending}", {"decision": "allow"}), 200)
        self.assertEqual(self.alice.call("GET", f"/v1/approvals/{pending}").json["state"], "allowed")
        allowed = self.alice.call("POST", f"/v1/sandboxes/{box}/network", {"action": "allow", "host": "example.org"})
        self.assertStatus(allowed, 200)
        self.assertIn("example.org", allowed.json["allowed_hosts"])
        other = self.bob.create()
        self.assertStatus(self.bob.call("POST", f"/v1/sandboxes/{other}/network", {"action": "allow", "host": "example.org"}), 403)


class Events(ApiTest):
    def first_events(self, caller):
        response = caller.open("GET", "/v1/events", query={"after": 0})
        stream = api.events(response)
        found = [next(stream) for _ in range(2 if caller is not self.bob else 1)]
        response.connection.close()
        return found

    def test_token_cannot_displace_events_of_another_and_lost_events_are_counted(self):
        self.bob.create()
        box = self.alice.create()
        connection = self.alice.connection()
        body = json.dumps({"action": "allow", "host": "example.org"})
        for _ in range(1100):  # each refusal is an event
            connection.request("POST", f"/v1/sandboxes/{box}/network", body, self.alice.headers({"Content-Type": "application/json"}))
            response = connection.getresponse()
            self.assertEqual((response.status, bool(response.read())), (403, True))
        connection.close()
        self.assertEqual(self.first_events(self.bob)[0][0], "sandbox.created")
        lost, kept = self.first_events(self.alice)
        self.assertEqual((lost[0], lost[2]["data"], kept[0]), ("events.lost", {"count": 1101 - 1024}, "approval.requested"))
        lost, kept = self.first_events(self.owner)
        self.assertEqual((lost[0], kept[0]), ("events.lost", "sandbox.created"))


class Browsers(ApiTest):
    def call(self, headers, method="GET", path="/v1/sandboxes", body=None):
        return self.alice.call(method, path, body, headers=headers)

    def test_hosts_and_origins_of_others_are_refused(self):
        # CONFORMS("R-HTTP-6")
        self.assertStatus(self.call({"Host": "evil.example"}), 421, "wrong_host")
        self.assertStatus(self.call({"Host": "127.0.0.1.evil.example"}), 421)
        for origin in ("http://evil.example", "null", "http://localhost:1", f"https://127.0.0.1:{self.server.port}", "x"):
            self.assertStatus(self.call({"Origin": origin}), 403, "cross_origin")
        self.assertStatus(self.call({"Sec-Fetch-Site": "cross-site"}), 403, "cross_site")
        own = f"http://127.0.0.1:{self.server.port}"
        self.assertStatus(self.call({"Origin": own}), 200)
        self.assertStatus(self.call({"Origin": own}, "POST", body={}), 403, "csrf")
        self.assertStatus(self.call({"Origin": own, "X-Caisson-CSRF": "1"}, "POST", body={}), 201)
        preflight = self.call({"Origin": own, "Access-Control-Request-Method": "POST"}, "OPTIONS")
        self.assertIn(preflight.status, (403, 405))
        self.assertNotIn("Access-Control-Allow-Origin", preflight.headers)
        self.assertStatus(self.call({"Content-Type": "text/plain"}, "POST", body=b"{}"), 415)


if __name__ == "__main__":
    api.main()
