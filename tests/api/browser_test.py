#!/usr/bin/env python3
"""A page that a sandbox serves cannot approve, read or execute anything, in a real browser of the sandbox's owner.

CAISSON_API_NODE: a copy of tests/api/node with its packages installed (`make test-api` creates it).
"""
import json
import os
import shutil
import subprocess

import api
from api import ApiTest

NODE = os.environ.get("CAISSON_API_NODE", "")
HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = """
import http.server
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        with open("seen", "a") as file:
            file.write(str(self.headers))
        if self.path.startswith("/page"):
            self.answer("text/html", open("page.html", "rb").read())
        elif self.path.startswith("/worker.js"):
            self.answer("text/javascript", b"self.addEventListener('fetch', () => {});")
        else:
            self.answer("text/plain", b"from the sandbox")
    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Set-Cookie", "planted=1; Domain=localhost; Path=/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


class Browser(ApiTest):
    def setUp(self):
        # The victim is the token that owns both the hostile sandbox and the sandbox with the secret.
        self.victim = self.alice.create(name="victim")
        self.alice.put(self.victim, "secret", b"the secret")
        self.hostile = self.alice.create(name="hostile")
        with open(os.path.join(HERE, "node/hostile_page.html"), "rb") as file:
            self.alice.put(self.hostile, "page.html", file.read())
        self.alice.put(self.hostile, "server.py", SERVER.encode())
        self.alice.run(self.hostile, ["python3", "server.py"], mode="background")
        port = self.alice.call("POST", f"/v1/sandboxes/{self.hostile}/ports", {"port": 8000})
        self.preview = port.json["preview_url"].rstrip("/")
        refused = self.alice.call("POST", f"/v1/sandboxes/{self.victim}/network", {"action": "allow", "host": "example.org"})
        self.approval = refused.json["approvals"][0]["id"]
        host = {"Host": self.preview.split("//")[1]}
        anyone = api.Client(self.server, token="", unix=False)
        self.assertTrue(api.wait_until(lambda: anyone.call("GET", "/page", headers=host).status == 200))

    def state(self):
        """Returns the state that a page could have changed."""
        boxes = sorted(one["id"] for one in self.owner.call("GET", "/v1/sandboxes").json["sandboxes"])
        files = sorted(one["name"] for one in self.alice.call("GET", f"/v1/sandboxes/{self.victim}/files").json["files"])
        approval = self.alice.call("GET", f"/v1/approvals/{self.approval}").json["state"]
        commands = self.alice.call("GET", f"/v1/sandboxes/{self.victim}/commands").json["commands"]
        return boxes, files, approval, commands

    def records(self, event):
        return self.owner.call("GET", "/v1/audit", query={"event": event, "limit": 1000}).json["records"]

    def visit(self, headers, cookies):
        page = f"{self.preview}/page?sandbox={self.victim}&approval={self.approval}"
        raw = f"http://127.0.0.1:{self.server.port}/v1/sandboxes/{self.hostile}/files/content?path=page.html"
        task = {"chromium": shutil.which("chromium") or shutil.which("chromium-browser"), "page": page, "raw": raw,
                "headers": headers, "cookies": cookies}
        node = os.path.join(NODE, "node_modules/node/bin/node")
        done = subprocess.run([node, os.path.join(NODE, "browser.mjs")], input=json.dumps(task), capture_output=True, text=True, timeout=400)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, headers, cookies):
        before = self.state()
        sequence = max(one["seq"] for one in self.records("http_request"))
        seen = self.visit(headers, cookies)
        # Read the audit records of executed requests before this test sends further requests.
        done = [one["data"] for one in self.records("http_request") if one["seq"] > sequence]
        carried_out = [one for one in done if one["caller"] not in ("preview", "owner")]
        raw = [one for one in carried_out if one["operation"] == "readFile" and one["path"].endswith(f"{self.hostile}/files/content")]
        self.assertEqual([one for one in carried_out if one not in raw], [])
        self.assertEqual(self.state(), before)
        for name, result in seen["results"].items():
            self.assertNotIn("the secret", result, name)
            self.assertFalse(result.startswith(("read ", "2")) and name not in ("own origin", "cookie", "service worker"), (name, result))
            self.assertNotIn(result, ("open", "loaded"), name)
        self.assertIn("from the sandbox", seen["results"]["own origin"])
        self.assertGreater(len(seen["results"]), 80)
        # Neither the preview's response nor its script could set a cookie for the host names of the API.
        self.assertEqual([one for one in seen["cookies"] if one.split()[1] == "planted" and self.hostile not in one], [])
        self.assertNotIn("a page of a sandbox", seen["raw"]["shown"])
        refusals = [one["data"] for one in self.records("http_refused") if one["seq"] > sequence]
        self.assertGreater(len(refusals), 20)
        inside = self.alice.get(self.hostile, "seen").body.decode()
        self.assertNotIn(self.alice.token, inside)
        self.assertNotIn("token=", inside)
        return seen, refusals

    def cookies(self):
        return [{"name": name, "value": self.alice.token, "domain": domain, "path": "/"}
                for name in ("token", "Authorization", "caisson") for domain in ("127.0.0.1", "localhost")]

    def test_page_without_a_token_gets_nothing(self):
        # CONFORMS("R-HTTP-6")
        seen, refusals = self.check({}, [])
        self.assertEqual(seen["raw"]["status"], 401)

    def test_page_in_a_browser_with_a_token_cookie_gets_nothing(self):
        # CONFORMS("R-HTTP-6")
        seen, _ = self.check({}, self.cookies())
        self.assertEqual(seen["raw"]["status"], 401)  # cookies do not authenticate

    def test_page_in_a_browser_that_adds_the_token_to_every_request_gets_nothing(self):
        # CONFORMS("R-HTTP-6")
        # As an extension or a proxy of the owner might do: then only the checks of Origin and Sec-Fetch-Site protect.
        seen, refusals = self.check({"Authorization": f"Bearer {self.alice.token}"}, self.cookies())
        self.assertEqual(seen["raw"]["download"], "page.html")
        self.assertEqual({one["status"] for one in refusals if one["path"].startswith("/v1/")} - {403, 405}, set())


if __name__ == "__main__":
    if not NODE or not (shutil.which("chromium") or shutil.which("chromium-browser")):
        print("chromium or CAISSON_API_NODE is missing; make test-api provides both")
        raise SystemExit(77)
    api.main()
