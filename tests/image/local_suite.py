"""Import, save, verify: the store and its files."""
import fcntl
import gzip
import json
import os
import pathlib
import stat
import subprocess
import sys
import tarfile
import time

from world import CAISSON, ROOT, ImageTest, directory, entry, hard_link, link, needs, oci_layout, sha256, tar_bytes


class ImportSources(ImageTest):
    def check_root(self, reference):
        (root,) = self.roots(reference)
        self.assertEqual((root / "etc/motd").read_text(), "hello\n")
        self.assertEqual(os.readlink(root / "lib"), "usr/lib")
        self.assertEqual((root / "bin/other").stat().st_ino, (root / "bin/tool").stat().st_ino)
        self.assertEqual(stat.S_IMODE((root / "tmp").stat().st_mode), 0o1777)
        self.assertEqual(stat.S_IMODE((root / "root").stat().st_mode), 0o700)
        self.assert_store_clean()

    def test_root_tarball_plain_and_gzip(self):
        # CONFORMS("R-IMAGE-1")
        data = tar_bytes(ROOT)
        (self.scratch / "r.tar").write_bytes(data)
        (self.scratch / "r.tar.gz").write_bytes(gzip.compress(data))
        self.assertIn("Loaded image: root:1", self.must("import", self.scratch / "r.tar", "root:1").out)
        self.must("import", self.scratch / "r.tar.gz", "root:2")
        self.check_root("root:1")
        self.check_root("root:2")
        self.assertEqual(self.inspect("root:1")["Layers"][0]["DiffID"], self.inspect("root:2")["Layers"][0]["DiffID"])

    @needs("zstd")
    def test_root_tarball_zstd(self):
        (self.scratch / "r.tar").write_bytes(tar_bytes(ROOT))
        self.run_program("zstd", "-q", self.scratch / "r.tar")
        self.must("import", self.scratch / "r.tar.zst", "root:3")
        self.check_root("root:3")

    def test_names_beyond_ascii_are_kept(self):
        for at, layout in enumerate((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)):
            names = ["F\u0151tan\u00fas\u00edtv\u00e1ny.crt", "\u65e5\u672c/\u8a9e", "a b%\u00e9" + "x" * 120]
            path = self.write_tar(f"{at}.tar", [entry(name, b"x") for name in names] + [link("l", names[0])], layout)
            self.must("import", path, f"names:{at}")
            (root,) = self.roots(f"names:{at}")
            for name in names:
                self.assertEqual((root / name).read_bytes(), b"x")
            self.assertEqual(os.readlink(root / "l"), names[0])
        self.must("import", root, "names:directory")
        self.assertTrue((self.roots("names:directory")[0] / names[1]).exists())
        self.assert_store_clean()

    def test_directory_is_reproducible(self):
        self.environment["SOURCE_DATE_EPOCH"] = "1700000000"
        tree = self.scratch / "tree"
        with tarfile.open(self.write_tar("r.tar", ROOT)) as archive:
            archive.extractall(tree)
        self.must("import", tree, "dir:1")
        self.must("import", f"{tree}/", "dir:2")
        self.check_root("dir:1")
        self.assertEqual(self.inspect("dir:1")["Digest"], self.inspect("dir:2")["Digest"])

    def test_oci_layout_directory_and_archive(self):
        # CONFORMS("R-IMAGE-1")
        layout = self.scratch / "app"
        digest = oci_layout(layout, [tar_bytes(ROOT)], {"config": {"Env": ["A=b"], "Cmd": ["sh"]}}, name="v1")
        self.must("import", layout)
        self.assertEqual(self.inspect("app:v1")["Digest"], digest)
        self.assertEqual(self.inspect("app:v1")["Config"], {"Env": ["A=b"], "Cmd": ["sh"]})
        self.run_program("tar", "-C", layout, "-cf", self.scratch / "a.tar", ".")
        self.must("import", self.scratch / "a.tar", "archive:v2")
        self.assertEqual(self.inspect("archive:v2")["Digest"], digest)
        self.check_root("app:v1")

    def test_docker_archive_with_linked_layers(self):
        layer = tar_bytes(ROOT)
        upper = tar_bytes([entry("etc/motd", b"upper\n")])
        config = json.dumps({"os": "linux", "architecture": "x", "rootfs": {"type": "layers", "diff_ids": [sha256(layer), sha256(upper), sha256(layer)]}}).encode()
        one, two, three = ("1" * 64, "2" * 64, "3" * 64)
        manifest = json.dumps([{"Config": f"{sha256(config)[7:]}.json", "RepoTags": ["app:1", "other/app:2"],
                                "Layers": [f"{one}/layer.tar", f"{two}/layer.tar", f"{three}/layer.tar"]}]).encode()
        path = self.write_tar("d.tar", [directory(one), entry(f"{one}/layer.tar", layer), entry(f"{two}/layer.tar", upper),
                                        link(f"{three}/layer.tar", f"../{one}/layer.tar"), entry(f"{sha256(config)[7:]}.json", config),
                                        entry("manifest.json", manifest)])
        self.must("import", path)
        self.assertEqual(self.inspect("app:1")["Id"], sha256(config))
        self.assertEqual(self.inspect("other/app:2")["Id"], sha256(config))
        self.assertEqual([item["DiffID"] for item in self.inspect("app:1")["Layers"]], [sha256(layer), sha256(upper), sha256(layer)])
        self.assert_store_clean()

    def test_names_of_an_archive_do_not_replace_another_image(self):
        self.must("import", self.write_tar("r.tar", ROOT), "debian:12")
        own = self.inspect("debian:12")["Id"]
        layout = self.scratch / "debian"
        oci_layout(layout, [tar_bytes([entry("evil", b"x")])], name="debian:12")
        refused = self.image("import", layout)
        self.assertEqual(refused.status, 125, refused.text)
        self.assertIn("--replace", refused.err)
        self.assertEqual(self.inspect("debian:12")["Id"], own)
        self.must("import", layout, "debian:13")
        self.must("import", "--replace", layout)
        self.assertNotEqual(self.inspect("debian:12")["Id"], own)
        self.must("import", layout)
        self.assert_store_clean()

    def test_names_with_a_digest_in_an_archive_are_refused(self):
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        layer = tar_bytes([entry("evil", b"x")])
        config = json.dumps({"os": "linux", "architecture": "x", "rootfs": {"type": "layers", "diff_ids": [sha256(layer)]}}).encode()
        for at, name in enumerate(("root@sha256:" + "a" * 64, "root:1@sha256:" + "a" * 64)):
            manifest = json.dumps([{"Config": f"{sha256(config)[7:]}.json", "RepoTags": [name], "Layers": ["l.tar"]}]).encode()
            archive = self.write_tar(f"t{at}.tar", [entry(f"{sha256(config)[7:]}.json", config), entry("l.tar", layer), entry("manifest.json", manifest)])
            layout = self.scratch / f"annotated{at}"
            own = oci_layout(layout, [layer])
            index = json.loads((layout / "index.json").read_text())
            index["manifests"][0]["annotations"] = {"io.containerd.image.name": name}
            (layout / "index.json").write_text(json.dumps(index))
            for path in (archive, layout):
                refused = self.image("import", path)
                self.assertEqual(refused.status, 125, refused.text)
                self.assertIn("digest", refused.err)
        self.assertEqual([item["name"] for item in json.loads(self.must("list", "--json").out)], ["docker.io/library/root:1"])
        index["manifests"][0]["annotations"] = {"io.containerd.image.name": f"root:1@{own}"}  # as containerd writes it
        (layout / "index.json").write_text(json.dumps(index))
        self.must("import", layout)
        self.assertNotEqual(self.inspect("root:1")["Digest"], own)
        self.assert_store_clean()

    def test_multi_platform_index_selects_the_machine(self):
        layout = self.scratch / "multi"
        own = oci_layout(layout, [tar_bytes(ROOT)])
        blobs = layout / "blobs/sha256"
        machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(os.uname().machine, os.uname().machine)
        other = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": "sha256:" + "0" * 64, "size": 3}
        index = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
            dict(other, platform={"os": "linux", "architecture": "s390x"}),
            dict(other, digest=own, size=(blobs / own[7:]).stat().st_size, platform={"os": "linux", "architecture": machine})]}).encode()
        (blobs / sha256(index)[7:]).write_bytes(index)
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
            {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": sha256(index), "size": len(index)}]}))
        self.must("import", layout, "multi:1")
        shown = self.inspect(f"multi:1@{sha256(index)}")
        self.assertEqual((shown["Digest"], shown["IndexDigest"]), (own, sha256(index)))
        refused = self.image("import", "--platform", "linux/riscv64", layout, "multi:2")
        self.assertEqual(refused.status, 125)
        self.assertIn("available: linux/s390x", refused.err)


class OwnState(ImageTest):
    def test_is_never_imported(self):
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        (self.store.parent / "keys").mkdir(exist_ok=True)
        for place in (self.store.parent, self.store.parent.parent, self.store.parent / "keys"):
            refused = self.image("import", place, "own:1")
            self.assertNotEqual(refused.status, 0)
            self.assertIn("own state", refused.err)


class Layers(ImageTest):
    def test_whiteouts_have_the_kernels_form(self):
        # CONFORMS("R-IMAGE-3")
        lower = tar_bytes([directory("a"), entry("a/gone", b"x"), entry("a/kept", b"k"), directory("o"), entry("o/old", b"o"),
                           directory("again"), entry("again/old", b"o")])
        upper = tar_bytes([directory("a"), entry("a/.wh.gone"), directory("o"), entry("o/.wh..wh..opq"), entry("o/new", b"n"),
                           entry(".wh.again"), directory("again"), entry("again/new", b"n")])
        oci_layout(self.scratch / "w", [lower, upper], name="1")
        self.must("import", self.scratch / "w")
        below, above = self.roots("w:1")
        gone = os.lstat(above / "a/gone")
        self.assertTrue(stat.S_ISCHR(gone.st_mode) and gone.st_rdev == 0)
        self.assertEqual(os.getxattr(above / "o", "user.overlay.opaque"), b"y")
        self.assertEqual(os.getxattr(above / "again", "user.overlay.opaque"), b"y")
        shown = self.run_program("unshare", "-Urm", "sh", "-c", 'mount -t overlay overlay -o "userxattr,lowerdir=$1:$0" "$2" && cd "$2" && find . | sort',
                                 below, above, (self.scratch / "mount").mkdir() or self.scratch / "mount")
        if shown.status != 0:
            self.skipTest(f"this kernel mounts no overlay for users: {shown.err.strip()}")
        self.assertEqual(shown.out.split(), [".", "./a", "./a/kept", "./again", "./again/new", "./o", "./o/new"])

    def test_equal_layers_are_stored_once(self):
        shared = tar_bytes(ROOT)
        for name in ("one", "two"):
            oci_layout(self.scratch / name, [shared, tar_bytes([entry(name, name.encode())])], name="1")
            self.must("import", self.scratch / name)
        self.assertEqual(self.roots("one:1")[0], self.roots("two:1")[0])
        self.assertEqual(len(list((self.store / "layers").iterdir())), 3)

    def test_wrong_diff_id_is_refused(self):
        # CONFORMS("R-IMAGE-2")
        oci_layout(self.scratch / "bad", [tar_bytes(ROOT)], name="1", diff_ids=["sha256:" + "1" * 64])
        refused = self.image("import", self.scratch / "bad")
        self.assertEqual(refused.status, 125)
        self.assertIn("DiffID", refused.err)
        self.assertEqual(json.loads(self.must("list", "--json").out), [])
        self.assert_store_clean()

    def test_changed_blob_of_a_layout_is_refused(self):
        # CONFORMS("R-IMAGE-2")
        layout = self.scratch / "bad"
        layer = tar_bytes(ROOT)
        oci_layout(layout, [layer], name="1")
        (layout / "blobs/sha256" / sha256(layer)[7:]).write_bytes(layer[:-1] + b"x")
        refused = self.image("import", layout)
        self.assertEqual(refused.status, 125)
        self.assertIn("another digest", refused.err)


class Verify(ImageTest):
    def setUp(self):
        super().setUp()
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        (self.root,) = self.roots("root:1")

    def finds(self, expected):
        result = self.image("verify", "root:1")
        self.assertEqual(result.status, 1, result.text)
        self.assertIn(expected, result.out)

    def test_changed_content_is_found(self):
        # CONFORMS("R-IMAGE-2")
        times = os.stat(self.root / "etc/motd")
        (self.root / "etc/motd").write_text("HELLO\n")
        os.utime(self.root / "etc/motd", ns=(times.st_atime_ns, times.st_mtime_ns))
        self.finds("etc/motd: another content")

    def test_added_removed_and_retyped_files_are_found(self):
        (self.root / "etc/extra").write_text("x")
        (self.root / "bin/other").unlink()
        (self.root / "lib").unlink()
        (self.root / "lib").symlink_to("/etc")
        os.chmod(self.root / "bin/tool", 0o4755)
        result = self.image("verify", "--json")
        problems = {item["object"].split("/", 1)[1]: item["what"] for item in json.loads(result.out)["problems"]}
        self.assertEqual(problems, {"etc/extra": "not in the image", "bin/other": "missing", "lib": "another link target", "bin/tool": "another mode"})

    def test_changed_record_and_blob_are_found(self):
        (layer,) = (self.store / "layers").iterdir()
        record = layer / "record"
        record.write_text(record.read_text().replace("motd", "m0td"))
        self.finds("the record of files was changed")
        digest = self.inspect("root:1")["Layers"][0]["Digest"][7:]
        blob = self.store / "blobs/sha256" / digest
        os.chmod(blob, 0o600)
        blob.write_bytes(b"x")
        self.finds("the blob has another content")


class VerifyLayers(ImageTest):
    def test_names_that_continue_the_name_of_a_directory_are_in_order(self):
        names = ("a.b", "a/b", "a", "a-", "a/.c", "a!", "\u00e9/x", "\u00e9.")
        self.must("import", self.write_tar("r.tar", [directory("a"), directory("\u00e9")] + [entry(name, b"x") for name in names if name != "a"]), "root:1")
        self.assert_store_clean()
        (root,) = self.roots("root:1")
        for name in ("a!", "a/.c"):
            (root / name).unlink()
        (root / "a+").write_text("x")
        problems = {item["object"].split("/", 1)[1]: item["what"] for item in json.loads(self.image("verify", "--json").out)["problems"]}
        self.assertEqual(problems, {"a!": "missing", "a/.c": "missing", "a+": "not in the image"})

    def test_long_record_takes_little_memory(self):
        deep = "/".join(["d" * 250] * 14)
        self.must("import", "-q", self.write_tar("r.tar", [entry(f"{deep}/{number}") for number in range(20_000)]), "root:1")
        (layer,) = (self.store / "layers").iterdir()
        self.assertGreater((layer / "record").stat().st_size, 64 << 20)
        # Started by a small process, because a new process inherits the peak of its parent.
        measure = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); " \
                  "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
        result = self.run_program(sys.executable, "-c", measure, CAISSON, "image", "verify")
        self.assertEqual(result.status, 0, result.text)
        self.assertLess(int(result.out.split("peak ")[1]) // 1024, 48, "MiB of memory")

    def test_directory_with_the_inode_of_a_replaced_file_has_its_own_mode(self):
        entries = [entry("kept")]
        for number in range(100):
            # A file is replaced, then a directory is implied: most file systems give it the free inode number.
            entries += [entry(f"f{number}", mode=0o601), hard_link(f"f{number}", "kept"), entry(f"d{number}/e")]
        self.must("import", "-q", self.write_tar("r.tar", entries), "root:1")
        self.assert_store_clean()


class LargeRoot(ImageTest):
    def test_decoder_that_found_the_type_does_not_disturb_the_import(self):
        # The decoder continues to read for a moment, but every import must get the whole archive.
        names = [entry(f"{number:090}") for number in range(4000)]  # more than the decoder sends at once
        archive = self.write_tar("r.tar", names + [entry(f"data{number}", os.urandom(1 << 20)) for number in range(96)])
        for number in range(6):
            self.must("import", "-q", archive, f"root:{number}")
        self.assertEqual(len(list((self.store / "layers").iterdir())), 1)


class Save(ImageTest):
    def test_archives_import_again_with_the_same_digests(self):
        # CONFORMS("R-IMAGE-1")
        oci_layout(self.scratch / "app", [tar_bytes(ROOT), gzip.compress(tar_bytes([entry("x", b"y")]))], name="1",
                   types={1: "application/vnd.oci.image.layer.v1.tar+gzip"},
                   diff_ids=[sha256(tar_bytes(ROOT)), sha256(tar_bytes([entry("x", b"y")]))])
        self.must("import", self.scratch / "app")
        before = self.inspect("app:1")
        for kind in ("oci", "docker"):
            archive = self.scratch / f"{kind}.tar"
            self.must("save", "app:1", archive, "--format", kind)
            self.environment["CAISSON_HOME"] = str(self.scratch / kind)
            self.must("import", archive)
            after = self.inspect("app:1")
            self.assertEqual(after["Id"], before["Id"])
            self.assertEqual([item["DiffID"] for item in after["Layers"]], [item["DiffID"] for item in before["Layers"]])
            self.assertEqual(after["Digest"] == before["Digest"], kind == "oci")
            self.environment["CAISSON_HOME"] = str(self.home)

    def test_existing_partial_file_is_not_overwritten(self):
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        (self.scratch / "o.tar.partial").write_text("mine")
        self.assertEqual(self.image("save", "root:1", self.scratch / "o.tar").status, 125)
        self.assertEqual((self.scratch / "o.tar.partial").read_text(), "mine")


class Locks(ImageTest):
    def test_layer_that_is_locked_for_a_moment_can_be_used(self):
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        with open(self.roots("root:1")[0].parent / "complete") as looked_at:  # as prune does
            fcntl.flock(looked_at, fcntl.LOCK_EX)
            planning = subprocess.Popen([CAISSON, "plan", "--image", "root:1", "--workspace", ":none", "--", "true"], env=self.environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(0.5)
        error = planning.communicate(timeout=60)[1].decode()
        self.assertEqual(planning.returncode, 0, error)

    def test_prune_makes_no_completion_record(self):
        oci_layout(self.scratch / "app", [tar_bytes(ROOT), tar_bytes([entry("x", b"y")])], name="1")
        self.must("import", self.scratch / "app")
        lower, upper = self.roots("app:1")
        (lower.parent / "complete").unlink()
        with open(upper.parent / "complete") as used:
            fcntl.flock(used, fcntl.LOCK_SH)
            self.must("prune", "--all")
        self.assertIn("app", self.must("list").out)
        self.assertFalse((lower.parent / "complete").exists())

    def test_prune_that_must_wait_changes_nothing(self):
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        with open(self.store / "lock") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            for words in (["prune", "--all"], ["remove", "root:1"]):
                self.assertEqual(self.image(*words).status, 125)
        self.assertIn("root", self.must("list").out)

    def test_layer_whose_lock_is_unknown_stays(self):
        if os.geteuid() == 0:
            self.skipTest("root can open every file")
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        root = self.roots("root:1")[0]
        (root.parent / "complete").chmod(0)
        self.assertIn("a sandbox uses them", self.must("remove", "root:1").out)
        self.assertTrue((root / "etc/motd").exists())
        (root.parent / "complete").chmod(0o600)
        self.must("prune")
        self.assertFalse(root.exists())

    def test_waiting_for_a_lock_ends(self):
        self.must("import", self.write_tar("r.tar", ROOT), "root:1")
        with open(self.store / "lock") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            began = time.monotonic()
            refused = self.image("prune")
            self.assertEqual(refused.status, 125)
            self.assertIn("another process is using the image store", refused.err)
            self.assertLess(time.monotonic() - began, 60)

    def test_parallel_imports_all_succeed(self):
        archives = [self.write_tar(f"{at}.tar", ROOT + [entry(f"n{at}", b"n")]) for at in range(6)]
        running = [subprocess.Popen([CAISSON, "image", "import", "-q", str(path), f"p:{at}"], env=self.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) for at, path in enumerate(archives)]
        for process in running:
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, error)
        self.assertEqual(len(json.loads(self.must("list", "--json").out)), 6)
        self.assert_store_clean()
