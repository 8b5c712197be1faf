#!/usr/bin/env python3
"""A full disk below CAISSON_HOME or a workspace: 507 with a reason, and the server works again when there is space.

The disks are small tmpfs mounts in a mount namespace, in which the test starts itself again.
"""
import io
import os
import subprocess
import tarfile
import tempfile
import unittest

import api

HOME_BYTES = 48 << 20


def mount_tmpfs(path, size):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "caisson-test", path], check=True)


class Disk:
    """A small disk that can be filled to the last byte."""

    def __init__(self, path, size):
        self.path = path
        mount_tmpfs(path, size)
        self.filler = os.path.join(path, "filler")

    def fill(self, leave=0):
        with open(self.filler, "ab", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
            if leave:
                file.truncate(max(0, file.tell() - leave))

    def free(self):
        if os.path.exists(self.filler):
            os.unlink(self.filler)


class DiskFull(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        home = tempfile.mkdtemp(prefix="ca-", dir="/tmp")
        cls.home = Disk(home, HOME_BYTES)
        cls.workspace_path = tempfile.mkdtemp(prefix="ca-ws-", dir="/tmp")
        cls.workspace = Disk(cls.workspace_path, 4 << 20)
        os.chmod(cls.workspace_path, 0o755)
        cls.server = api.Server("--allow-workspace", cls.workspace_path, home=home)
        cls.owner = cls.server.owner()
        cls.alice = cls.server.client("alice")
        cls.pid = cls.server.process.pid

    @classmethod
    def tearDownClass(cls):
        cls.home.free()
        cls.workspace.free()
        cls.server.close()
        for disk in (cls.home, cls.workspace):
            subprocess.run(["umount", "-l", disk.path], check=True)
            os.rmdir(disk.path)

    def tearDown(self):
        self.home.free()
        self.workspace.free()
        self.assertIsNone(self.server.process.poll(), "the server ended")
        box = self.alice.create()
        self.assertEqual(self.alice.run(box, "echo works").json["stdout"], "works\n")
        for one in self.owner.call("GET", "/v1/sandboxes").json["sandboxes"]:
            gone = self.owner.call("DELETE", f"/v1/sandboxes/{one['id']}")
            self.assertEqual(gone.status, 204, gone)
        self.assertEqual(self.server.caisson("audit", "verify").returncode, 0)

    def assertFull(self, reply):
        self.assertEqual(reply.status, 507, reply)
        self.assertIn(reply.json["code"], ("disk_full", "disk_quota"), reply)
        self.assertTrue(reply.json["reason"], reply)

    def test_nothing_is_done_without_a_record(self):
        # CONFORMS("R-HTTP-11")
        box = self.alice.create()
        for _ in range(200):  # the last page of the log still has space for records
            self.home.fill()
            reply = self.alice.call("GET", "/v1/whoami")
            if reply.status != 200:
                break
        self.assertFull(reply)
        self.assertIn("audit log", reply.json["reason"])
        self.assertFull(self.alice.call("POST", "/v1/sandboxes", {}))
        self.assertFull(self.alice.run(box, "touch done"))
        self.assertEqual(self.alice.call("GET", "/healthz").status, 200)
        self.home.free()
        self.assertEqual(self.alice.get(box, "done").status, 404)

    def test_create_is_undone(self):
        # CONFORMS("R-HTTP-11")
        before = set(os.listdir(os.path.join(self.server.home, "server/sandboxes")))
        refused = 0
        # From no space to enough space, so that each step of a create runs out of space once.
        for leave in range(0, 256 << 10, 16 << 10):
            self.home.fill(leave)
            reply = self.alice.call("POST", "/v1/sandboxes", {"name": "full"})
            self.home.free()
            if reply.status != 201:
                self.assertFull(reply)
                refused += 1
        self.assertGreater(refused, 0)
        made = self.owner.call("GET", "/v1/sandboxes", query={"name": "full"}).json["sandboxes"]
        self.assertEqual(len(made), 16 - refused)
        for one in made:
            self.assertEqual(self.alice.run(one["id"], "true").status, 200)
            self.assertEqual(self.alice.call("DELETE", f"/v1/sandboxes/{one['id']}").status, 204)
        self.assertEqual(set(os.listdir(os.path.join(self.server.home, "server/sandboxes"))), before)

    def test_file_is_old_or_new(self):
        # CONFORMS("R-HTTP-11")
        box = self.alice.create()
        self.assertEqual(self.alice.put(box, "keep", b"old").status, 200)
        self.home.fill(1 << 20)
        self.assertFull(self.alice.put(box, "keep", b"x" * (8 << 20)))
        self.home.free()
        self.assertEqual(self.alice.get(box, "keep").body, b"old")
        names = [one["name"] for one in self.alice.call("GET", f"/v1/sandboxes/{box}/files").json["files"]]
        self.assertEqual(names, ["keep"])
        self.assertEqual(self.alice.put(box, "keep", b"new").status, 200)

    def test_archive_names_the_full_disk(self):
        # CONFORMS("R-HTTP-11")
        box = self.alice.create()
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as archive:
            entry = tarfile.TarInfo("big")
            entry.size = 8 << 20
            archive.addfile(entry, io.BytesIO(os.urandom(entry.size)))
        self.home.fill(1 << 20)
        self.assertFull(self.alice.call("PUT", f"/v1/sandboxes/{box}/files/archive", data.getvalue()))
        self.home.free()

        def has_ended():
            commands = self.alice.call("GET", f"/v1/sandboxes/{box}/commands").json["commands"]
            return commands and not any(one["running"] for one in commands)

        self.assertTrue(api.wait_until(has_ended), "its end was lost")
        self.assertEqual(self.alice.call("PUT", f"/v1/sandboxes/{box}/files/archive", data.getvalue()).status, 204)
        self.assertEqual(self.alice.call("GET", f"/v1/sandboxes/{box}/files/stat", query={"path": "big"}).json["size"], 8 << 20)

    def commit(self, disk, leave):
        names = [f"f{i}" for i in range(8)]
        for name in names:
            with open(os.path.join(self.workspace_path, name), "w") as file:
                file.write("old")
        box = self.owner.create(workspace=self.workspace_path)
        self.owner.run(box, "for f in f*; do head -c 300000 /dev/zero | tr '\\0' n > $f; done")
        at = f"/v1/sandboxes/{box}/commit"
        digest = self.owner.call("POST", at, {"dry_run": True}).json["digest"]
        disk.fill(leave)
        reply = self.owner.call("POST", at, {"expect": digest})
        disk.free()
        contents = set()
        for name in names:
            with open(os.path.join(self.workspace_path, name), "rb") as file:
                contents.add(file.read()[:3])
        if reply.status == 200:
            self.assertEqual(contents, {b"nnn"})
            return
        self.assertFull(reply)
        self.assertEqual(contents, {b"old"}, "half of a commit")
        again = self.owner.call("POST", at, {"dry_run": True}).json["digest"]
        self.assertEqual(self.owner.call("POST", at, {"expect": again}).status, 200)
        self.assertEqual(set(os.listdir(self.workspace_path)), set(names))

    def test_commit_is_whole_or_not_at_all(self):
        # CONFORMS("R-HTTP-11")
        for leave in (0, 200_000, 1_000_000):
            self.commit(self.workspace, leave)
        for leave in (0, 30_000, 100_000):
            self.commit(self.home, leave)


if __name__ == "__main__":
    api.enter_mount_namespace()
    api.main()
