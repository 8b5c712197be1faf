#!/usr/bin/env python3
"""The wall clock is set while the server runs: nothing expires early, and expired items do not become valid again.

Runs caisson-server-moved-clock (moved_clock.cc), whose wall clock has an offset that the test writes to a file.
"""
import os
import tempfile
import time
import unittest

import api

MOVED = os.environ.get("CAISSON_MOVED_CLOCK", os.path.join(os.path.dirname(api.CAISSON), "tests/api/caisson-server-moved-clock"))
YEAR = 365 * 24 * 3600


def cpu_seconds(pid):
    fields = api.read_text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Clock(unittest.TestCase):
    def setUp(self):
        descriptor, self.clock = tempfile.mkstemp(prefix="ca-clock-")
        os.close(descriptor)
        self.addCleanup(os.unlink, self.clock)
        self.server = api.Server(program=MOVED, environment={"CAISSON_TEST_CLOCK": self.clock},
                                 config='[templates.warm]\nprofile = "bash"\nmemory = "256M"\npool = 1\n')
        self.addCleanup(self.server.close)
        self.owner = self.server.owner()

    def set_clock(self, seconds):
        with open(self.clock, "w") as file:
            file.write(str(seconds))

    def wall_time(self):
        """Returns the server's time: that of its newest audit record."""
        self.owner.call("GET", "/v1/whoami")
        records = self.owner.call("GET", "/v1/audit", query={"event": "http_request", "limit": 1000}).json["records"]
        return records[-1]["time"]

    def test_the_clock_of_this_server_can_be_set(self):
        year = int(self.wall_time()[:4])
        self.set_clock(10 * YEAR)
        self.assertGreater(int(self.wall_time()[:4]), year + 8)

    def test_tokens_last_as_long_as_they_were_meant_to(self):
        # CONFORMS("R-HTTP-12")
        hour = self.server.client("hour", "--expires", "1h")
        short = self.server.client("short", "--expires", "3s")
        self.assertEqual(short.call("GET", "/v1/whoami").status, 200)
        for offset in (10 * YEAR, -10 * YEAR, 0):
            self.set_clock(offset)
            self.assertEqual(hour.call("GET", "/v1/whoami").status, 200, offset)
        self.assertTrue(api.wait_until(lambda: short.call("GET", "/v1/whoami").status == 401))
        self.set_clock(-10 * YEAR)  # setting the clock back does not make it valid again
        self.assertEqual(short.call("GET", "/v1/whoami").status, 401)

    def test_sandboxes_neither_end_early_nor_live_for_ever(self):
        # CONFORMS("R-HTTP-12")
        kept = self.owner.create(sandbox_timeout=3600)
        self.owner.put(kept, "file", b"content")
        pooled = self.owner.create(template="warm", sandbox_timeout=3600)
        for offset in (10 * YEAR, -10 * YEAR, 0):
            self.set_clock(offset)
            self.assertEqual(self.owner.get(kept, "file").body, b"content", offset)
            self.assertEqual(self.owner.run(pooled, "echo hi").json["stdout"], "hi\n", offset)
            self.assertEqual(self.server.caisson("clean").returncode, 0)
            ids = [one["id"] for one in self.owner.call("GET", "/v1/sandboxes").json["sandboxes"]]
            self.assertEqual(sorted(ids), sorted([kept, pooled]))
        short = self.owner.create(sandbox_timeout=2)
        self.set_clock(-10 * YEAR)
        path = f"/v1/sandboxes/{short}"

        def is_gone():
            # Without a request to the sandbox, because each request extends its time.
            self.server.caisson("clean")
            return short not in [one["id"] for one in self.owner.call("GET", "/v1/sandboxes").json["sandboxes"]]

        self.assertTrue(api.wait_until(is_gone))
        self.assertEqual(self.owner.call("GET", path).status, 404)

    def test_idempotency_keys_hold_across_jumps(self):
        # CONFORMS("R-HTTP-12")
        key = {"Idempotency-Key": "one"}
        first = self.owner.call("POST", "/v1/sandboxes", {"name": "once"}, headers=key)
        self.assertEqual(first.status, 201)
        for offset in (10 * YEAR, -10 * YEAR, 0):
            self.set_clock(offset)
            again = self.owner.call("POST", "/v1/sandboxes", {"name": "once"}, headers=key)
            self.assertEqual((again.status, again.json["id"]), (201, first.json["id"]), offset)
            self.assertEqual(again.headers["Idempotency-Replayed"], "true")
            # A new key triggers the removal of old ones.
            self.owner.call("POST", "/v1/sandboxes", {"template": "none"}, headers={"Idempotency-Key": f"other{offset}"})
        self.assertEqual(len(self.owner.call("GET", "/v1/sandboxes", query={"name": "once"}).json["sandboxes"]), 1)

    def test_pending_approvals_survive_a_jump(self):
        # CONFORMS("R-HTTP-12")
        alice = self.server.client("alice")
        box = alice.create()
        refused = alice.call("POST", f"/v1/sandboxes/{box}/network", {"action": "allow", "host": "example.org"})
        pending = refused.json["approvals"][0]["id"]
        for offset in (10 * YEAR, -10 * YEAR, 0):
            self.set_clock(offset)
            self.assertEqual([one["id"] for one in self.owner.call("GET", "/v1/approvals").json["approvals"]], [pending])

    def test_the_server_stays_idle(self):
        # CONFORMS("R-HTTP-12")
        self.owner.create()
        stream = self.owner.open("GET", "/v1/events")
        for offset in (YEAR, -YEAR):
            self.set_clock(offset)
            self.owner.call("GET", "/v1/whoami")
            before = cpu_seconds(self.server.process.pid)
            time.sleep(2)  # the measured interval
            self.assertLess(cpu_seconds(self.server.process.pid) - before, 0.5)
        stream.connection.close()
        done = self.server.caisson("audit", "verify")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if not os.access(MOVED, os.X_OK):
        print(f"{MOVED} is not built")
        raise SystemExit(77)
    api.main()
