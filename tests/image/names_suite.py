"""Names of images: list, tag, inspect, remove, prune."""
import fcntl
import json
import os

from world import CAISSON, ROOT, ImageTest, entry, oci_layout, sha256, tar_bytes


class Names(ImageTest):
    def setUp(self):
        super().setUp()
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")

    def test_list_tag_remove_and_prune(self):
        self.must("tag", "root:1", "localhost:5000/team/root:2")
        self.assertEqual({item["name"] for item in json.loads(self.must("list", "--json").out)},
                         {"docker.io/library/root:1", "localhost:5000/team/root:2"})
        identifier = self.inspect("root:1")["Id"][7:19]
        self.assertIn(identifier, self.must("list").out)
        self.assertEqual(self.must("list", "-q").out.split(), [identifier] * 2)
        self.assertEqual(self.inspect(identifier)["Id"][7:19], identifier)
        self.must("remove", "root:1")
        recorded = [json.loads(line)["data"] for line in self.run_program(CAISSON, "audit", "show", "--json").out.splitlines() if "image_changed" in line]
        self.assertEqual([(data["action"], data["name"].split("/")[-1]) for data in recorded], [("add", "root:1"), ("add", "root:2"), ("remove", "root:1")])
        self.assertEqual(len(list((self.store / "layers").iterdir())), 1)
        self.must("remove", identifier)
        self.assertEqual(list((self.store / "layers").iterdir()), [])
        self.assertEqual(list((self.store / "blobs/sha256").iterdir()), [])
        missing = self.image("remove", "root:1")
        self.assertEqual(missing.status, 125)
        self.assertIn("try: caisson image list", missing.err)

    def test_replaced_image_loses_its_name_and_prune_removes_it(self):
        self.must("import", self.write_tar("s.tar", [entry("x", b"1")]), "root:1")
        self.assertIn("<none>", self.must("list").out)
        self.must("prune")
        self.assertEqual(len(json.loads(self.must("list", "--json").out)), 1)
        self.assertEqual(len(list((self.store / "layers").iterdir())), 1)
        self.assert_store_clean()

    def test_layer_in_use_is_not_removed(self):
        (root,) = self.roots("root:1")
        with open(root.parent / "complete") as used:
            fcntl.flock(used, fcntl.LOCK_SH)
            self.assertIn("a sandbox uses them", self.must("remove", "root:1").out)
            self.assertTrue((root / "etc/motd").exists())
        self.must("prune")
        self.assertFalse(root.exists())

    def test_image_of_a_session_stays_while_the_session_exists(self):
        # CONFORMS("R-IMAGE-6")
        def session(*words):
            done = self.run_program(CAISSON, "session", *words)
            self.assertEqual(done.status, 0, done.text)
            return done.out.strip()

        identifier = self.inspect("root:1")["Id"][7:19]
        used = session("create", "--image", "root:1", "--workspace", ":none")
        self.must("prune", "--all")
        self.assertIn("root", self.must("list").out)
        self.must("remove", "root:1")
        self.must("prune", "--all")
        self.assertIn("<none>", self.must("list").out)
        refused = self.image("remove", identifier)
        self.assertEqual(refused.status, 125)
        self.assertIn("a session uses this image", refused.err)
        (self.home / "sessions" / used / "meta.json").rename(self.scratch / "meta.json")
        (self.home / "sessions" / used / "meta.json").write_text("damaged")
        self.assertEqual(self.image("prune").status, 125, "an unknown image may be any")
        (self.scratch / "meta.json").replace(self.home / "sessions" / used / "meta.json")
        fork = session("fork", used)
        session("destroy", used)
        self.must("prune", "--all")
        self.assertEqual(len(list((self.store / "layers").iterdir())), 1)
        self.assert_store_clean()
        session("destroy", fork)
        self.must("prune")
        self.assertEqual(list((self.store / "layers").iterdir()), [])
        self.assertEqual(list((self.store / "blobs/sha256").iterdir()), [])

    def test_digest_pins_the_manifest(self):
        # CONFORMS("R-IMAGE-2")
        digest = self.inspect("root:1")["Digest"]
        self.inspect(f"root:1@{digest}")
        self.inspect(f"root@{digest}")
        self.assertEqual(self.image("inspect", "root:1@sha256:" + "0" * 64).status, 125)
        self.assertEqual(self.image("inspect", f"other@{digest}").status, 125)

    def test_name_cannot_look_like_the_id_of_another_image(self):
        identifier = self.inspect("root:1")["Id"][7:19]
        for at, name in enumerate((identifier, identifier + ":latest", f"docker.io/library/{identifier}:latest", "sha256:" + identifier)):
            layout = self.scratch / f"layout{at}"
            oci_layout(layout, [tar_bytes([entry("other", b"x")])])
            index = json.loads((layout / "index.json").read_text())
            index["manifests"][0]["annotations"] = {"io.containerd.image.name": name if ":" in name else name + ":latest"}
            (layout / "index.json").write_text(json.dumps(index))
            for words in (["import", layout], ["import", self.scratch / "r.tar", name], ["tag", "root:1", name], ["pull", name]):
                refused = self.image(*words)
                self.assertEqual(refused.status, 125, refused.text)
                self.assertIn("looks like an image id", refused.err)
        self.assertEqual(len(json.loads(self.must("list", "--json").out)), 1)
        self.assert_store_clean()

    def test_name_of_one_image_and_id_of_another_is_ambiguous(self):
        first, identifier = self.inspect("root:1")["Digest"], self.inspect("root:1")["Id"][7:19]
        self.must("import", self.write_tar("o.tar", [entry("other", b"x")]), "other:1")
        index = json.loads((self.store / "index.json").read_text())  # as another program would write it
        index["manifests"][1]["annotations"]["org.opencontainers.image.ref.name"] = f"docker.io/library/{identifier}:latest"
        (self.store / "index.json").write_text(json.dumps(index))
        for words in (["image", "inspect", identifier], ["image", "remove", identifier], ["run", "--image", identifier, "--", "true"]):
            refused = self.run_program(CAISSON, *words)
            self.assertEqual(refused.status, 125, refused.text)
            self.assertIn("the name of one image and the id of another", refused.err)
        self.assertNotEqual(self.inspect(identifier + ":latest")["Digest"], first)
        self.assertEqual(self.inspect(self.inspect("root:1")["Id"])["Digest"], first)

    def test_quota_is_enforced(self):
        config = self.scratch / "config/caisson"
        config.mkdir(parents=True)
        (config / "config.toml").write_text('[images]\nquota = "1M"\n')
        os.chmod(config / "config.toml", 0o600)
        refused = self.image("import", self.write_tar("big.tar", [entry("big", bytes(2 << 20))]), "big:1")
        self.assertEqual(refused.status, 125)
        self.assertIn("quota", refused.err)
        self.assert_store_clean()

    def test_name_that_must_be_signed_is_refused_for_imports(self):
        config = self.scratch / "config/caisson"
        config.mkdir(parents=True)
        (config / "config.toml").write_text('[images]\nsignatures = ["docker.io/library/*=/nowhere/key.pem"]\n')
        os.chmod(config / "config.toml", 0o600)
        self.assertIn("signature", self.image("import", self.scratch / "r.tar", "root:9").err)
        self.assertIn("signature", self.image("tag", "root:1", "root:9").err)
        self.must("import", self.scratch / "r.tar", "localhost/root:9")

    def test_rule_for_signatures_names_images_as_users_do(self):
        config = self.scratch / "config/caisson"
        config.mkdir(parents=True)
        for pattern in ("root", "docker.io/root", "DOCKER.IO/library/root", "docker.io/ro*"):
            (config / "config.toml").write_text(f'[images]\nsignatures = ["{pattern}=/nowhere/key.pem"]\n')
            os.chmod(config / "config.toml", 0o600)
            self.assertIn("signature", self.image("tag", "root:1", "root:9").err, pattern)
            self.assertNotEqual(self.run_program(CAISSON, "plan", "--image", "root:1", "--", "/bin/true").status, 0, pattern)
        for pattern in ("root:1", "docker.io/library/root:*", "docker.io/library/r*t"):
            (config / "config.toml").write_text(f'[images]\nsignatures = ["{pattern}=/nowhere/key.pem"]\n')
            os.chmod(config / "config.toml", 0o600)
            refused = self.run_program(CAISSON, "plan", "--image", "root:1", "--", "/bin/true")
            self.assertEqual(refused.status, 125, refused.text)
            self.assertIn(pattern, refused.err)
            self.assertIn("docker.io/library/r", refused.err)
