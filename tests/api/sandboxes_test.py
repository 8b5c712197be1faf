#!/usr/bin/env python3
"""Sandboxes: created, kept, listed, forked, from templates; requests with an idempotency key."""
import concurrent.futures
import json
import os
import shutil
import signal
import threading
import time

import api
from api import ApiTest


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


class KeysOfCommands(ApiTest):
    def test_streams_take_no_key(self):
        # CONFORMS("R-HTTP-8")
        box = self.alice.create()
        at, key = f"/v1/sandboxes/{box}/commands", {"Idempotency-Key": "stream"}
        body = {"command": "echo x >> ran", "mode": "stream"}
        for _ in range(2):
            self.assertStatus(self.alice.call("POST", at, body, headers=key), 400, "invalid_key")
        self.assertStatus(self.alice.get(box, "ran"), 404)
        self.assertIn(self.alice.call("POST", at, {**body, "mode": "background"}, headers=key).status, (200, 202))

    def kill_supervisor(self, box):
        """Kills the processes that the server started for this sandbox. Their environment is not readable."""
        pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        mine = [pid for pid in pids if f"supervise\0{box}\0" in api.read_text(f"/proc/{pid}/cmdline")]
        self.assertNotEqual(mine, [])
        for pid in mine:
            os.kill(pid, signal.SIGKILL)

    def lose_command(self, box, body, key, lose):
        """Runs the command, calls lose() while it runs, and expects an error, and none other than that from then on."""
        at, headers, replies = f"/v1/sandboxes/{box}/commands", {"Idempotency-Key": key}, []
        thread = threading.Thread(target=lambda: replies.append(self.alice.call("POST", at, body, headers=headers)))
        thread.start()
        self.assertTrue(api.wait_until(lambda: self.alice.get(box, "ran").status == 200))
        lose()
        thread.join()
        self.assertGreaterEqual(replies[0].status, 400, replies)
        for _ in range(2):
            self.assertStatus(self.alice.call("POST", at, body, headers=headers), 409, "outcome_unknown")

    def test_command_that_started_is_not_repeated_after_an_error(self):
        # CONFORMS("R-HTTP-8")
        box = self.alice.create()

        def lose():  # no record of the command is left
            shutil.rmtree(os.path.join(self.server.home, "sessions", box, "logs"))
            self.kill_supervisor(box)

        self.lose_command(box, {"command": "echo x >> ran; sleep 60", "request_timeout": 30}, "lost", lose)

    def test_command_that_was_waited_for_is_not_repeated_after_an_error(self):
        # CONFORMS("R-HTTP-8")
        box = self.alice.create()
        self.lose_command(box, {"command": "echo x >> ran; sleep 60"}, "waited", lambda: self.kill_supervisor(box))
        self.assertEqual(self.alice.get(box, "ran").body, b"x\n")

    def test_command_that_did_not_start_is_repeated_with_the_same_key(self):
        box = self.alice.create()
        at, key = f"/v1/sandboxes/{box}/commands", {"Idempotency-Key": "refused"}
        for _ in range(2):
            self.assertStatus(self.alice.call("POST", at, {"command": "true", "command_timeout": 86400}, headers=key), 400)


class IdempotencyKeys(ApiTest):
    def kept(self):
        """Returns names and sizes of the stored responses."""
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
            if number == 40:  # responses that an earlier server stored count too
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
        # The pool is unchanged: no sandbox was used or created for them.
        self.assertEqual(self.server.owner().call("GET", "/v1/stats").json["pools"]["warm"], before)

    def test_a_failing_warm_up_is_an_error_at_the_start(self):
        with self.assertRaisesRegex(AssertionError, "warm-up command failed: no module\n"):
            api.Server(config='[templates.bad]\nprofile = "bash"\npool = 1\nwarm_up = ["sh", "-c", "echo no module >&2; exit 3"]\n')


if __name__ == "__main__":
    api.main()
