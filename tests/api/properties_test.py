#!/usr/bin/env python3
"""Requests that fast-check generates from the OpenAPI document cause no undocumented 5xx.

CAISSON_API_NODE: a copy of tests/api/node with its packages installed (`make test-api` creates it).
SECONDS: the duration; default: 60. SEED: the seed of an earlier run, to repeat it.
"""
import os
import subprocess
import sys

import api
from api import ApiTest

NODE = os.environ.get("CAISSON_API_NODE", "")


class Properties(ApiTest):
    def test_no_request_fails_inside_the_server(self):
        # CONFORMS("R-HTTP-7")
        fuzz = self.server.client("fuzz", "--scopes", "read,exec,admin", "--sandboxes", "6", "--memory", "3G")
        box = fuzz.create(memory="256M", disk="64M", sandbox_timeout=3600)
        fuzz.put(box, "a", b"content")
        fuzz.run(box, "sleep 1000", mode="background")
        command = [os.path.join(NODE, "node_modules/node/bin/node"), os.path.join(NODE, "properties.mjs"), f"http://127.0.0.1:{self.server.port}", fuzz.token, box,
                   os.environ.get("SECONDS", "60"), os.environ.get("SEED", "")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        print(done.stdout, file=sys.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIsNone(self.server.process.poll())
        # A request may have set a short timeout; extend it again.
        extended = fuzz.call("POST", f"/v1/sandboxes/{box}/extend", {"sandbox_timeout": 600})
        self.assertStatus(extended, 200)
        self.assertStatus(fuzz.run(box, "true"), 200)


if __name__ == "__main__":
    if not NODE:
        print("CAISSON_API_NODE is not set; make test-api sets it")
        raise SystemExit(77)
    api.main()
