#!/usr/bin/env python3
"""Routes that do not belong to one sandbox: health, documents, events, the audit log; and ports."""
import socket
import time

import api
from api import ApiTest, events


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


class PublishedPorts(ApiTest):
    def test_number_of_published_ports_is_limited(self):
        box = self.alice.create()
        where = f"/v1/sandboxes/{box}/ports"
        statuses = [self.alice.call("POST", where, {"port": 2000 + i}).status for i in range(65)]
        self.assertEqual(statuses, [201] * 64 + [429])
        self.assertStatus(self.alice.call("POST", where, {"port": 2000}), 200)
        self.assertStatus(self.alice.call("DELETE", where + "/2000"), 204)
        self.assertStatus(self.alice.call("POST", where, {"port": 2064}), 201)


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

    def test_preview_skips_interim_responses(self):
        box = self.alice.create()
        # Answers the path /N with N interim responses before the response, and /switch with a switch of protocols.
        script = ("import re, socket\ns = socket.create_server(('127.0.0.1', 8000))\nwhile True:\n"
                  " c, _ = s.accept()\n path = c.recv(65536).split()[1].decode()[1:]\n"
                  " hints = b'HTTP/1.1 103 Early Hints\\r\\nLink: </a.css>\\r\\nSet-Cookie: a=b\\r\\n\\r\\n'\n"
                  " if path == 'switch': c.sendall(b'HTTP/1.1 101 Switching\\r\\nUpgrade: x\\r\\nConnection: Upgrade\\r\\n\\r\\n')\n"
                  " else: c.sendall(hints * int(path or 0) + b'HTTP/1.1 200 OK\\r\\nDate: then\\r\\nContent-Length: 2\\r\\n\\r\\nok')\n"
                  " c.close()\n")
        self.alice.put(box, "server.py", script.encode())
        self.alice.run(box, ["python3", "server.py"], mode="background")
        self.assertStatus(self.alice.call("POST", f"/v1/sandboxes/{box}/ports", {"port": 8000}), 201)
        anyone = api.Client(self.server, token="", unix=False)
        host = {"Host": f"8000-{box}.localhost:{self.server.port}"}
        deadline = time.monotonic() + 20
        while anyone.call("GET", "/0", headers=host).status == 502 and time.monotonic() < deadline:
            time.sleep(0.1)
        for count in (0, 1, 32):
            reply = anyone.call("GET", f"/{count}", headers=host)
            self.assertEqual((reply.status, reply.body), (200, b"ok"), count)
            self.assertEqual(len(reply.headers.get_all("Date")), 1)
        self.assertStatus(anyone.call("GET", "/33", headers=host), 502)
        self.assertStatus(anyone.call("GET", "/switch", headers=host), 502)


if __name__ == "__main__":
    api.main()
