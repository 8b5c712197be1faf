#!/usr/bin/env python3
"""The server is killed with -9 at any moment, and started again."""
import os
import random
import shutil
import tempfile
import threading
import time
import unittest

import api


class Crash(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="ca-ws-", dir="/tmp")
        os.chmod(self.directory, 0o755)
        self.addCleanup(shutil.rmtree, self.directory)
        self.server = api.Server("--allow-workspace", self.directory)
        self.addCleanup(self.server.close)
        self.alice, self.bob = self.server.client("alice"), self.server.client("bob")
        self.owner = self.server.owner()

    def kill_during(self, work, after):
        """Runs `work` in a thread, kills the server after this long, and starts it again."""
        def quiet():
            try:
                work()
            except Exception:
                pass
        thread = threading.Thread(target=quiet)
        thread.start()
        time.sleep(after)
        self.server.kill()
        thread.join()
        self.server.start()

    def test_running_sandboxes_are_adopted(self):
        # CONFORMS("R-HTTP-9")
        box = self.alice.create(name="kept", labels={"a": "b"})
        command = self.alice.run(box, "while :; do echo tick; sleep 0.1; done", mode="background").json["id"]
        self.server.kill()
        self.server.start()
        found = self.alice.call("GET", f"/v1/sandboxes/{box}").json
        self.assertEqual((found["name"], found["labels"], found["state"]), ("kept", {"a": "b"}, "running"))
        self.assertTrue(self.alice.call("GET", f"/v1/sandboxes/{box}/commands/{command}").json["running"])
        self.assertEqual(self.bob.call("GET", f"/v1/sandboxes/{box}").status, 404)
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.assertTrue(self.alice.call("GET", f"/v1/sandboxes/{box}/commands/{command}").json["running"])

    def test_create_is_done_once_or_not_at_all(self):
        # CONFORMS("R-HTTP-8", "R-HTTP-9")
        for round in range(6):
            key = {"Idempotency-Key": f"round-{round}"}
            self.kill_during(lambda: self.alice.call("POST", "/v1/sandboxes", {"name": f"n{round}"}, headers=key), random.uniform(0, 0.06))
            reply = self.alice.call("POST", "/v1/sandboxes", {"name": f"n{round}"}, headers=key)
            self.assertEqual(reply.status, 201, reply)
            named = self.alice.call("GET", "/v1/sandboxes", query={"name": f"n{round}"}).json["sandboxes"]
            self.assertEqual([one["id"] for one in named], [reply.json["id"]])
            self.assertEqual(self.bob.call("GET", "/v1/sandboxes").json["sandboxes"], [])

    def test_files_are_old_or_new(self):
        # CONFORMS("R-HTTP-9")
        box = self.alice.create()
        contents = [bytes([65 + i]) * 3_000_000 for i in range(2)]
        self.assertEqual(self.alice.put(box, "f", contents[0]).status, 200)
        for round in range(4):
            self.kill_during(lambda: self.alice.put(box, "f", contents[1 - round % 2]), random.uniform(0, 0.05))
            self.assertIn(self.alice.get(box, "f").body, contents)

    def test_commits_are_whole_or_not_at_all(self):
        # CONFORMS("R-HTTP-9")
        names = [f"f{i}" for i in range(20)]
        for name in names:
            with open(os.path.join(self.directory, name), "w") as file:
                file.write("old")
        for round in range(3):
            box = self.owner.create(workspace=self.directory)
            text = f"new{round}"
            self.owner.run(box, f"for f in f*; do printf {text} > $f; done")
            at = f"/v1/sandboxes/{box}/commit"
            digest = self.owner.call("POST", at, {"dry_run": True}).json["digest"]
            self.kill_during(lambda: self.owner.call("POST", at, {"expect": digest}), random.uniform(0, 0.03))
            self.owner.call("POST", at, {"dry_run": True})  # finishes an interrupted commit
            found = set()
            for name in names:
                with open(os.path.join(self.directory, name)) as file:
                    found.add(file.read())
            self.assertEqual(len(found), 1, found)
            self.owner.call("DELETE", f"/v1/sandboxes/{box}")


if __name__ == "__main__":
    api.main()
