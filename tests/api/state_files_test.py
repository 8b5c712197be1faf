#!/usr/bin/env python3
"""State files that belong to another user, or cannot be read or removed: skipped or reported, never ignored silently.

Runs in a mount namespace with an empty /var/tmp.
"""
import os
import subprocess
import unittest

import api

# The directory where root stores the files of sessions in the landlock tier.
PASSABLE = "/var/tmp/caisson-sessions-0"


class StateFiles(api.ApiTest):
    def setUp(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=1777", "caisson-test", "/var/tmp"], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", "/var/tmp"], check=True)

    def create_and_destroy(self):
        box = self.alice.create()
        self.assertEqual(self.alice.run(box, "echo works").json["stdout"], "works\n")
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 204)
        self.assertEqual(self.leftovers(), [])

    def leftovers(self):
        return [name for name in os.listdir(os.path.join(self.server.home, "sessions")) if name.startswith((".gone-", "cs-"))]

    def test_directory_of_another_user_is_skipped(self):
        # CONFORMS("R-HTTP-11")
        os.mkdir(PASSABLE, 0o700)
        with open("/proc/self/uid_map") as file:
            all_users = file.read().split()[2] != "1"
        if all_users:
            os.chown(PASSABLE, 65534, 65534)
        else:  # a directory of the machine's root, whose id is not mapped in this user namespace
            subprocess.run(["mount", "--bind", "/usr", PASSABLE], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", PASSABLE], check=True)
        self.assertNotEqual(os.stat(PASSABLE).st_uid, 0)
        self.create_and_destroy()

    def test_link_of_another_user_is_not_followed(self):
        # CONFORMS("R-HTTP-11")
        target = os.path.join(self.server.home, "canary")
        os.mkdir(target, 0o700)
        os.symlink(target, PASSABLE)
        self.create_and_destroy()
        self.assertEqual(os.stat(target).st_mode & 0o777, 0o700)

    def test_files_that_cannot_be_removed_are_reported(self):
        # CONFORMS("R-HTTP-11")
        os.mkdir(PASSABLE)
        os.chmod(PASSABLE, 0o777)  # owned by this user, but others can create a link in it: rejected
        box = self.alice.create()
        reply = self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 503, "unavailable")
        self.assertIn("others may write to it", reply.json["reason"])
        self.assertIn("has ended", reply.json["reason"])
        self.assertIn(PASSABLE, reply.json["try"])
        # It has ended, and its files are removed as soon as possible.
        self.assertStatus(self.alice.call("GET", f"/v1/sandboxes/{box}"), 404)
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 404)
        self.assertEqual(self.owner.call("GET", "/v1/sandboxes").json["sandboxes"], [])
        os.chmod(PASSABLE, 0o700)
        self.assertTrue(api.wait_until(lambda: not self.leftovers(), 60), self.leftovers())

    def test_damaged_metadata_are_no_missing_sandbox(self):
        # CONFORMS("R-HTTP-11")
        box = self.alice.create()
        self.server.kill()  # a new server has not read the metadata yet
        self.server.start()
        with open(os.path.join(self.server.home, "sessions", box, "meta.json"), "w") as file:
            file.write("{}")
        reply = self.alice.call("GET", f"/v1/sandboxes/{box}/files")
        self.assertNotEqual(reply.status, 404, reply)
        self.assertIn("meta.json", reply.json["reason"])
        self.assertStatus(self.bob.call("GET", f"/v1/sandboxes/{box}/files"), 404)
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 204)
        self.assertStatus(self.alice.call("GET", f"/v1/sandboxes/{box}/files"), 404)

    def test_damaged_sandbox_belongs_to_its_tenant_and_other_stale_files_are_removed(self):
        box, other = self.alice.create(), self.bob.create()
        for client, one in ((self.alice, box), (self.bob, other)):
            self.assertEqual(client.run(one, "echo x > file").json["exit_code"], 0)
        sessions, records = (os.path.join(self.server.home, name) for name in ("sessions", "server/sandboxes"))
        with open(os.path.join(sessions, box, "meta.json"), "w") as file:
            file.write(" " * ((1 << 20) + 1))
        self.assertStatus(self.bob.call("DELETE", f"/v1/sandboxes/{other}"), 204)
        self.assertNotIn(other, os.listdir(os.path.join(self.server.home, "stores")))
        # Records without a sandbox are removed; the record of the damaged sandbox is needed after a restart.
        stray = os.path.join(records, "http-stray.json")
        with open(stray, "w") as file:
            file.write("{}")
        for name in os.listdir(records):
            os.utime(os.path.join(records, name), (0, 0))
        self.assertTrue(api.wait_until(lambda: not os.path.exists(stray), 60), "not swept")
        self.server.kill()
        self.server.start()
        self.assertIn("damaged", self.alice.call("GET", "/v1/sandboxes").json["sandboxes"][0]["state"])
        self.assertStatus(self.bob.call("DELETE", f"/v1/sandboxes/{box}"), 404)
        self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 204)
        self.assertNotIn(box, os.listdir(os.path.join(self.server.home, "stores")))


if __name__ == "__main__":
    api.enter_mount_namespace()
    api.main()
