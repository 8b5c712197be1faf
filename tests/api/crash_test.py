#!/usr/bin/env python3
"""The server is killed with SIGKILL at various moments, and started again.

CAISSON_ROUNDS: how many moments each test tries; `make test-api` uses a larger number.
"""
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import api

ROUNDS = int(os.environ.get("CAISSON_ROUNDS", "4"))
# Calls that change files, start processes or communicate with them, with their names on all architectures.
STEPS = "?mkdir,mkdirat,?rename,?renameat,renameat2,?unlink,unlinkat,?link,linkat,ftruncate,write,pwrite64,?clone,clone3,sendmsg,connect"


def moments(longest):
    """Returns delays that cover the whole interval: one random delay in each part of it."""
    return [longest * (part + random.random()) / ROUNDS for part in range(ROUNDS)]


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
        """Runs `work` in a thread, kills the server after this many seconds, and starts it again."""
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

    def kill_at(self, step, work, similar):
        """Kills the server when the thread that handles `work` makes its call number `step` of STEPS; starts it again.
        Returns False if it makes fewer calls. `similar`: a request of the same kind, so that the thread exists."""
        pid = self.server.process.pid
        similar()
        threads = sorted(os.listdir(f"/proc/{pid}/task"))
        inject = f"inject={STEPS}:signal=KILL:when={step}"
        command = ["strace", "-o", "/dev/null", "-e", f"trace={STEPS}", "-e", inject]
        tracer = subprocess.Popen([*command, *(word for one in threads for word in ("-p", one))], stderr=subprocess.PIPE, text=True)
        self.addCleanup(tracer.stderr.close)
        for _ in threads:
            line = tracer.stderr.readline()
            self.assertIn("attached", line)
        try:
            work()
        except Exception:
            pass
        try:
            killed = self.server.process.wait(0.3) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            killed = False
        tracer.terminate()
        tracer.wait()
        if killed:
            self.server.start()
        return killed

    def create_and_destroy(self):
        self.alice.call("DELETE", "/v1/sandboxes/" + self.alice.create())

    def steps(self):
        """Returns numbers of calls: all of them with many rounds, otherwise some."""
        return range(1, 400, max(1, 12 // ROUNDS))

    def assertNothingIsLeft(self, ids=()):
        """Checks that after the last sandbox is destroyed no process, mount, control group or file of one is left."""
        for one in self.owner.call("GET", "/v1/sandboxes").json["sandboxes"]:
            self.assertEqual(self.owner.run(one["id"], "true").status, 200, "half a sandbox is listed")
            self.assertEqual(self.owner.call("DELETE", f"/v1/sandboxes/{one['id']}").status, 204)
            ids = {*ids, one["id"]}
        home, own = self.server.home, {self.server.process.pid}

        def left():
            others = {pid: line for pid, line in api.processes_of(home).items() if pid not in own}
            mounts = [line for line in api.read_text("/proc/self/mountinfo").splitlines() if home in line]
            sessions = [name for name in os.listdir(f"{home}/sessions") if not name.startswith(".")]
            names = os.listdir(f"{home}/sessions/.names") if os.path.isdir(f"{home}/sessions/.names") else []
            return [one for one in (others, mounts, sessions, names, api.cgroups_of(ids)) if one]

        api.wait_until(lambda: not left())
        self.assertEqual(left(), [])

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
        for round, delay in enumerate(moments(0.06)):
            key = {"Idempotency-Key": f"round-{round}"}
            self.kill_during(lambda: self.alice.call("POST", "/v1/sandboxes", {"name": f"n{round}"}, headers=key), delay)
            reply = self.alice.call("POST", "/v1/sandboxes", {"name": f"n{round}"}, headers=key)
            self.assertEqual(reply.status, 201, reply)
            named = self.alice.call("GET", "/v1/sandboxes", query={"name": f"n{round}"}).json["sandboxes"]
            self.assertEqual([one["id"] for one in named], [reply.json["id"]])
            self.assertEqual(self.bob.call("GET", "/v1/sandboxes").json["sandboxes"], [])
        self.assertNothingIsLeft()

    def test_create_survives_a_kill_at_each_step(self):
        # CONFORMS("R-HTTP-8", "R-HTTP-9")
        killed = 0
        for step in self.steps():
            name, key = f"s{step}", {"Idempotency-Key": f"step-{step}"}
            more = self.kill_at(step, lambda: self.alice.call("POST", "/v1/sandboxes", {"name": name}, headers=key),
                                self.create_and_destroy)
            killed += more
            reply = self.alice.call("POST", "/v1/sandboxes", {"name": name}, headers=key)
            self.assertEqual(reply.status, 201, (step, reply))
            named = self.alice.call("GET", "/v1/sandboxes", query={"name": name}).json["sandboxes"]
            self.assertEqual([one["id"] for one in named], [reply.json["id"]], step)
            self.assertEqual(self.alice.run(reply.json["id"], "echo hi").json["stdout"], "hi\n", step)
            self.assertEqual(self.alice.call("DELETE", f"/v1/sandboxes/{reply.json['id']}").status, 204)
            if not more:
                break
        self.assertGreater(killed, 0)
        print(f"create: killed at {killed} steps")
        self.assertNothingIsLeft()

    def test_create_from_a_checkpoint_survives_a_kill_at_each_step(self):
        # CONFORMS("R-HTTP-8", "R-HTTP-9")
        source = self.alice.create()
        self.alice.put(source, "f", b"old")
        self.assertEqual(self.alice.call("POST", f"/v1/sandboxes/{source}/checkpoints", {"name": "one"}).status, 201)
        self.alice.put(source, "f", b"new")
        killed = 0
        for step in self.steps():
            name, key = f"c{step}", {"Idempotency-Key": f"fork-{step}"}
            body = {"name": name, "checkpoint": f"{source}:one"}

            def similar():
                reply = self.alice.call("POST", "/v1/sandboxes", {"checkpoint": f"{source}:one"})
                self.alice.call("DELETE", f"/v1/sandboxes/{reply.json['id']}")

            more = self.kill_at(step, lambda: self.alice.call("POST", "/v1/sandboxes", body, headers=key), similar)
            killed += more
            reply = self.alice.call("POST", "/v1/sandboxes", body, headers=key)
            self.assertEqual(reply.status, 201, (step, reply))
            named = self.alice.call("GET", "/v1/sandboxes", query={"name": name}).json["sandboxes"]
            self.assertEqual([one["id"] for one in named], [reply.json["id"]], step)
            self.assertEqual(self.alice.get(reply.json["id"], "f").body, b"old", step)
            self.assertEqual(self.alice.call("DELETE", f"/v1/sandboxes/{reply.json['id']}").status, 204)
            if not more:
                break
        self.assertGreater(killed, 0)
        print(f"create from a checkpoint: killed at {killed} steps")
        self.assertNothingIsLeft()

    def test_destroy_survives_a_kill_at_each_step(self):
        # CONFORMS("R-HTTP-9")
        killed = 0
        for step in self.steps():
            box = self.alice.create()
            more = self.kill_at(step, lambda: self.alice.call("DELETE", f"/v1/sandboxes/{box}"), self.create_and_destroy)
            killed += more
            self.assertIn(self.alice.call("DELETE", f"/v1/sandboxes/{box}").status, (204, 404), step)
            self.assertEqual(self.alice.call("GET", f"/v1/sandboxes/{box}").status, 404, step)
            if not more:
                break
        self.assertGreater(killed, 0)
        print(f"destroy: killed at {killed} steps")
        self.assertNothingIsLeft()

    def test_files_are_old_or_new(self):
        # CONFORMS("R-HTTP-9")
        box = self.alice.create()
        contents = [bytes([65 + i]) * 3_000_000 for i in range(2)]
        self.assertEqual(self.alice.put(box, "f", contents[0]).status, 200)
        for round, delay in enumerate(moments(0.05)):
            self.kill_during(lambda: self.alice.put(box, "f", contents[1 - round % 2]), delay)
            self.assertIn(self.alice.get(box, "f").body, contents)
        small = [bytes([97 + i]) * 3000 for i in range(2)]
        self.assertEqual(self.alice.put(box, "g", small[0]).status, 200)
        killed = 0
        for step in self.steps():
            more = self.kill_at(step, lambda: self.alice.put(box, "g", small[step % 2]), lambda: self.alice.put(box, "h", b"x"))
            killed += more
            self.assertIn(self.alice.get(box, "g").body, small, step)
            if not more:
                break
        self.assertGreater(killed, 0)
        print(f"write: killed at {killed} steps")
        self.assertNothingIsLeft()

    def test_commits_are_whole_or_not_at_all(self):
        # CONFORMS("R-HTTP-9")
        names = [f"f{i}" for i in range(20)]
        for name in names:
            with open(os.path.join(self.directory, name), "w") as file:
                file.write("old")
        def content():
            found = set()
            for name in names:
                with open(os.path.join(self.directory, name)) as file:
                    found.add(file.read())
            return found

        def commit(round, interrupt):
            """Commits new content while the server is killed; returns the result of interrupt()."""
            before, text = content(), f"new{round}"
            box = self.owner.create(workspace=self.directory)
            self.owner.run(box, f"for f in f*; do printf {text} > $f; done")
            at = f"/v1/sandboxes/{box}/commit"
            digest = self.owner.call("POST", at, {"dry_run": True}).json["digest"]
            result = interrupt(lambda: self.owner.call("POST", at, {"expect": digest}), lambda: self.owner.call("POST", at, {"dry_run": True}))
            self.owner.call("POST", at, {"dry_run": True})  # finishes an interrupted commit
            self.assertIn(content(), (before, {text}))
            self.assertEqual(self.owner.call("DELETE", f"/v1/sandboxes/{box}").status, 204)
            self.assertEqual(sorted(os.listdir(self.directory)), sorted(names))
            return result

        for round, delay in enumerate(moments(0.03)):
            commit(f"a{round}", lambda work, _: self.kill_during(work, delay))
        killed = 0
        for step in self.steps():
            more = commit(f"b{step}", lambda work, similar: self.kill_at(step, work, similar))
            killed += more
            if not more:
                break
        self.assertGreater(killed, 0)
        print(f"commit: killed at {killed} steps")
        self.assertNothingIsLeft()


class Pools(unittest.TestCase):
    def test_pool_of_a_killed_server_is_removed(self):
        # CONFORMS("R-HTTP-9")
        server = api.Server(config='[templates.warm]\nprofile = "bash"\nmemory = "256M"\npool = 2\n')
        self.addCleanup(server.close)
        alice = server.client("alice")

        def sessions():
            return {name for name in os.listdir(f"{server.home}/sessions") if not name.startswith(".")}

        def is_ready():
            return alice.call("GET", "/v1/templates").json["templates"][0]["ready"] == 2

        self.assertTrue(api.wait_until(is_ready))
        kept = alice.create(template="warm")
        for delay in moments(0.1):
            before = sessions()
            thread = threading.Thread(target=lambda: self.take(alice))
            thread.start()
            time.sleep(delay)
            server.kill()
            thread.join()
            server.start()
            self.assertTrue(api.wait_until(is_ready))
            listed = {one["id"] for one in server.owner().call("GET", "/v1/sandboxes").json["sandboxes"]}
            self.assertIn(kept, listed)
            # The two sandboxes of the new pool, and those that were created.
            self.assertTrue(api.wait_until(lambda: len(sessions()) == len(listed) + 2), (before, sessions(), listed))
            for box in listed:
                self.assertEqual(server.owner().run(box, "echo hi").json["stdout"], "hi\n")
        for box in listed:
            self.assertEqual(server.owner().call("DELETE", f"/v1/sandboxes/{box}").status, 204)

    @staticmethod
    def take(client):
        try:
            client.create(template="warm")
        except Exception:
            pass


if __name__ == "__main__":
    api.main()
