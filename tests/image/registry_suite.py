"""pull and push with a real registry: resume, rate limits, mirrors, the quota."""
import json
import os
import subprocess
import threading
import time

from registry_case import LAYERS, RegistryTest
from world import entry, needs, oci_layout, sha256


class PlainRegistry(RegistryTest):
    def test_push_and_pull_keep_the_digest(self):
        # CONFORMS("R-IMAGE-4")
        reference = self.push()
        self.other_home()
        self.assertIn("Downloaded newer image", self.must("pull", reference).out)
        self.assertEqual(self.inspect(reference)["Digest"], self.digest)
        self.assertIn("up to date", self.must("pull", reference).out)
        self.must("pull", f"{self.registry.host}/team/app@{self.digest}")
        self.assert_store_clean()

    def test_unknown_names_and_digests_are_reported(self):
        self.push()
        for name in ("team/app:none", "team/none:1", "team/app@sha256:" + "0" * 64):
            result = self.image("pull", "-q", f"{self.registry.host}/{name}")
            self.assertEqual(result.status, 125)
            self.assertIn("not found in the registry", result.err)

    def test_interrupted_download_is_resumed(self):
        # CONFORMS("R-IMAGE-4")
        self.push()
        big = sha256(LAYERS[1])
        cuts = []

        def cut_once(handler, front):
            if handler.command == "GET" and handler.path.endswith(big) and len(cuts) < 2:
                cuts.append(handler.headers.get("Range"))
                handler.forward(cut=1 << 20)
                return True
            return False

        front = self.front(cut_once)
        self.other_home()
        self.must("pull", "-q", f"{front.host}/team/app:1")
        ranges = [headers.get("Range") for command, path, headers in front.requests if command == "GET" and path.endswith(big)]
        self.assertEqual(ranges[0], None)
        self.assertTrue(all(one.startswith("bytes=") for one in ranges[1:]), ranges)
        self.assertGreaterEqual(len(ranges), 3)

    def test_download_of_a_killed_process_is_resumed(self):
        self.push()
        big = sha256(LAYERS[1])
        begun, release = threading.Event(), threading.Event()

        def stall(handler, front):
            if handler.path.endswith(big) and not begun.is_set():
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(LAYERS[1])))
                handler.end_headers()
                handler.wfile.write(LAYERS[1][:1 << 20])
                handler.wfile.flush()
                begun.set()
                release.wait(30)
                handler.close_connection = True
                return True
            return False

        front = self.front(stall)
        self.other_home()
        pulling = subprocess.Popen([os.environ["CAISSON_BIN"], "image", "pull", "-q", f"{front.host}/team/app:1"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.assertTrue(begun.wait(20))
        partial = self.store / "partial" / big[7:]
        deadline = time.monotonic() + 20
        while (not partial.exists() or partial.stat().st_size == 0) and time.monotonic() < deadline:
            time.sleep(0.02)
        pulling.kill()
        pulling.wait()
        release.set()
        self.must("pull", "-q", f"{front.host}/team/app:1")
        last = [headers.get("Range") for command, path, headers in front.requests if path.endswith(big)][-1]
        self.assertTrue(last and last.startswith("bytes="), last)
        self.assert_store_clean()

    def test_rate_limit_is_waited_for(self):
        self.push()
        times = []

        def limit(handler, front):
            if "/manifests/" in handler.path:
                times.append(time.monotonic())
                if len(times) == 1:
                    return handler.reply(429, {"Retry-After": "2"})
            return False

        front = self.front(limit)
        self.other_home()
        self.must("pull", "-q", f"{front.host}/team/app:1")
        self.assertGreaterEqual(times[1] - times[0], 2)

    def test_rate_limit_of_an_hour_is_an_error(self):
        front = self.front(lambda handler, front: handler.reply(429, {"Retry-After": "3600"}))
        began = time.monotonic()
        result = self.image("pull", "-q", f"{front.host}/team/app:1")
        self.assertEqual(result.status, 125)
        self.assertIn("wait 3600 s", result.err)
        self.assertLess(time.monotonic() - began, 30)

    def test_mirror_is_tried_first_and_the_registry_second(self):
        self.push()
        seen = []

        def mirror(handler, front):
            seen.append(handler.path)
            return handler.reply(404) if len(seen) == 1 else False

        front = self.front(mirror)
        self.configure_owner(f'[images]\nmirrors = ["{self.registry.host}=http://{front.host}"]\n')
        self.other_home()
        self.must("pull", "-q", f"{self.registry.host}/team/app:1")
        self.assertEqual(len(seen), 1)
        self.other_home("third")
        self.must("pull", "-q", f"{self.registry.host}/team/app:1")
        self.assertGreater(len(seen), 3)


class Quota(RegistryTest):
    def setUp(self):
        super().setUp()
        self.push()
        self.other_home()

    def interrupted(self, data):
        """A registry whose image has a layer of `data`, of which the last byte is never sent."""
        def answer(handler, front):
            if handler.path.endswith(sha256(data)):
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(data)))
                handler.end_headers()
                handler.wfile.write(data[:-1])
                handler.close_connection = True
                return True
            return False

        name = f"i{len(list(self.scratch.iterdir()))}"
        oci_layout(self.scratch / name, [data], name="1")
        copied = self.run_program("skopeo", "--insecure-policy", "copy", "--preserve-digests", "--dest-tls-verify=false", f"oci:{self.scratch / name}:1", f"docker://{self.registry.host}/team/{name}:1")
        self.assertEqual(copied.status, 0, copied.text)
        return self.front(answer), name

    @needs("skopeo")
    def test_partial_downloads_count_and_the_oldest_are_removed(self):
        self.configure_owner('[images]\nquota = "10M"\n')
        layers = [os.urandom(3 << 20) for _ in range(5)]
        partial = self.store / "partial"
        for data in layers:
            front, name = self.interrupted(data)
            self.assertEqual(self.image("pull", "-q", f"{front.host}/team/{name}:1").status, 125)
            kept = sorted(partial.iterdir(), key=lambda path: path.stat().st_mtime_ns)
            self.assertLessEqual(sum(path.stat().st_size for path in kept), 10 << 20)
            self.assertEqual(kept[-1].name, sha256(data)[7:])
        self.assertEqual({path.name for path in kept}, {sha256(data)[7:] for data in layers[2:]})
        # Partial downloads make room for an image.
        self.must("import", "-q", self.write_tar("r.tar", [entry("data", os.urandom(3 << 20))]), "root:1")
        used = sum(path.stat().st_size for path in partial.iterdir())
        self.assertLessEqual(used, 4 << 20)
        self.assert_store_clean()

    def test_processes_at_the_same_time_share_the_quota(self):
        self.configure_owner('[images]\nquota = "10M"\n')
        big = sha256(LAYERS[1])
        begun, release = threading.Event(), threading.Event()

        def stall(handler, front):
            if handler.path.endswith(big):
                begun.set()
                release.wait(60)
            return False

        front = self.front(stall)
        pulling = subprocess.Popen([os.environ["CAISSON_BIN"], "image", "pull", "-q", f"{front.host}/team/app:1"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            self.assertTrue(begun.wait(20))
            self.must("import", "-q", self.write_tar("r.tar", [entry("data", os.urandom(3 << 20))]), "root:1")
        finally:
            release.set()
            error = pulling.communicate(timeout=60)[1].decode()
        self.assertEqual(pulling.returncode, 125, error)
        self.assertIn("the quota of the image store is used up", error)
        self.assertEqual(len(json.loads(self.must("list", "--json").out)), 1)
        self.must("prune")
        self.assert_store_clean()
