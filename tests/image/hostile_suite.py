"""Every hostile archive is refused or neutralised with a message, and changes nothing outside."""
import ctypes
import gzip
import json
import os
import pathlib
import stat
import sys
import threading

from hostile_archives import Case, all_cases, long_name, long_paths, long_texts, many, padded, raw_header
from world import CAISSON, ImageTest, needs, oci_layout, sha256, tar_bytes, entry


def snapshot(path):
    found = {}
    for root, directories, files in os.walk(path):
        for name in directories + files:
            whole = os.path.join(root, name)
            status = os.lstat(whole)
            data = open(whole, "rb").read() if stat.S_ISREG(status.st_mode) else b""
            found[whole] = (status.st_mode, status.st_uid, status.st_nlink if stat.S_ISREG(status.st_mode) else 0, data)
    return found


class HostileArchives(ImageTest):
    def setUp(self):
        super().setUp()
        self.canary = self.scratch / "canary"
        self.canary.mkdir()
        (self.canary / "victim").write_text("unharmed")
        self.before = snapshot(self.canary)

    def check_tree(self, root):
        """Checks that nothing in a layer can affect the host."""
        for base, directories, files in os.walk(root):
            for name in directories + files:
                path = os.path.join(base, name)
                status = os.lstat(path)
                self.assertEqual(status.st_mode & 0o6000, 0, f"{path}: setuid or setgid")
                self.assertEqual(status.st_uid, os.geteuid())
                whiteout = stat.S_ISCHR(status.st_mode) and status.st_rdev == 0
                self.assertTrue(whiteout or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode), path)
                if not stat.S_ISLNK(status.st_mode) and not whiteout:
                    self.assertEqual([one for one in os.listxattr(path) if one != "security.selinux"], [], path)

    def stored(self):
        index = self.store / "index.json"
        return len(json.loads(index.read_text())["manifests"]) if index.exists() else 0

    def check(self, case, number):
        archive = self.scratch / "hostile.tar"
        archive.write_bytes(case.data)
        before, name = self.stored(), f"hostile:{number}"
        result = self.image("import", "-q", archive, name)
        self.assertEqual(snapshot(self.canary), self.before, "the canary was changed")
        self.assertEqual(list((self.store / "tmp").iterdir()), [], "leftovers")
        self.assertNotIn("\x1b", result.text)
        if case.refused is not None:
            self.assertEqual(result.status, 125, result.text)
            self.assertNotEqual(case.refused, "", "each case expects one error")
            self.assertIn(case.refused, result.err)
            self.assertNotIn("doctor", result.err, "the sandbox failed, not the archive")
            self.assertEqual(self.stored(), before)
            return
        self.assertEqual(result.status, 0, result.text)
        (layer,) = self.inspect(name)["Layers"]
        if case.reported:
            self.assertIn(case.reported, result.err)
            self.assertIn(case.noted, "\n".join(note["what"] for note in layer["Neutralised"]))
        root = pathlib.Path(layer["Directory"])
        self.check_tree(root)
        for name in case.present:
            self.assertTrue(os.path.lexists(root / str(name).lstrip("/")), f"{name} is missing")
        for name in case.absent:
            self.assertFalse(os.path.lexists(root / name), f"{name} exists")

    def test_each_is_refused_or_neutralised(self):
        # CONFORMS("R-IMAGE-3")
        count = 0
        for case in all_cases(str(self.canary).lstrip("/")):
            count += 1
            with self.subTest(case.name):
                self.check(case, count)
        self.assertGreaterEqual(count, 60)
        self.assert_store_clean()

    def check_memory(self, case, most):
        """Checks that the import is refused, and that none of its processes used more than `most` MiB."""
        archive = self.scratch / "long.tar.gz"
        archive.write_bytes(case.data)
        # Started by a small process, because a new process inherits the peak of its parent.
        measure = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); " \
                  "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
        result = self.run_program(sys.executable, "-c", measure, CAISSON, "image", "import", "-q", archive, "long:1")
        self.assertEqual(result.status, 125, result.text)
        self.assertIn(case.refused, result.err)
        self.assertLess(len(result.err), 2000)
        peak = int(result.out.split("peak ")[1]) // 1024
        self.assertLess(peak, most, "MiB of memory")
        self.assertEqual(self.stored(), 0)
        self.assert_store_clean()

    def test_names_beyond_the_bound_are_refused_with_bounded_memory(self):
        # CONFORMS("R-IMAGE-3")
        for case in long_texts():
            with self.subTest(case.name):
                self.check_memory(case, most=450)

    def test_paths_behind_links_are_refused_with_bounded_memory(self):
        # CONFORMS("R-IMAGE-3")
        self.check_memory(long_paths(), most=200)

    def test_names_of_an_image_archive_are_refused_with_bounded_memory(self):
        # CONFORMS("R-IMAGE-3")
        text = b"x" * 60_000
        self.check_memory(Case("long links", many(6000, lambda number, noise: padded(raw_header(b"oci-layout")) if number == 0 else
                                                  long_name(b"L", noise + text) + raw_header(b"l", kind=b"2", linkname=b"l")),
                               refused="the names of its files take more than 16 MiB"), most=200)

    def set_quota(self, size):
        config = self.scratch / "config/caisson"
        config.mkdir(parents=True, exist_ok=True)
        (config / "config.toml").write_text(f'[images]\nquota = "{size}"\n')
        os.chmod(config / "config.toml", 0o600)

    def test_small_files_count_as_what_they_take(self):
        self.set_quota("1M")
        archive = self.scratch / "small.tar.gz"
        for count, refused in ((1000, "than the quota of the image store leaves"), (20_000, "take more than the quota leaves")):
            archive.write_bytes(many(count, lambda number, noise: raw_header(b"%d" % number, 1) + padded(b"x")))
            result = self.image("import", "-q", archive, "small:1")
            self.assertEqual(result.status, 125, result.text)
            self.assertIn(refused, result.err)
            self.assert_store_clean()
        archive.write_bytes(many(100, lambda number, noise: raw_header(b"%d" % number, 1) + padded(b"x")))
        self.must("import", "-q", archive, "small:1")
        archive.write_bytes(many(200, lambda number, noise: raw_header(b"%d" % number, 1) + padded(b"x")))
        self.assertIn("quota", self.image("import", "-q", archive, "small:2").err, "the first image counts as well")

    @needs("unshare", "setpriv", "mount")
    def test_small_archive_does_not_fill_the_disk(self):
        small = self.scratch / "small"
        small.mkdir()
        # Root keeps its user namespace: caisson needs a user id for the program other than root's.
        own = ["-m"] if os.geteuid() == 0 else ["-Um", "--map-current-user", "--keep-caps"]
        inside = ["unshare", *own, "sh", "-c", 'mount -t tmpfs -o size=64M none "$0" && exec setpriv --ambient-caps -all --inh-caps -all "$@"', small]
        if self.run_program(*inside, "true").status != 0:
            self.skipTest("no tmpfs in a user namespace here")
        archive, fitting = self.scratch / "large.tar.gz", self.write_tar("f.tar", [entry("f", bytes(1 << 20))])
        archive.write_bytes(gzip.compress(tar_bytes([entry("a", bytes(30 << 20)), entry("b", bytes(70 << 20))])))
        self.environment["CAISSON_HOME"] = str(small / "home")
        script = f"{CAISSON} image import -q {fitting} fits:1 && ! {CAISSON} image import -q {archive} large:1 && {CAISSON} image verify"
        result = self.run_program(*inside, "sh", "-c", script)
        self.assertEqual(result.status, 0, result.text)
        self.assertIn("exceed the size limit", result.err)
        self.assertNotIn("No space left", result.err)

    def test_directory_that_becomes_a_link_during_the_import_leads_nowhere(self):
        # CONFORMS("R-IMAGE-3")
        tree = self.scratch / "tree"
        for number in range(300):
            (tree / f"d/{number}").mkdir(parents=True)
            (tree / f"d/{number}/victim").write_text("own")
        (self.canary / "0").mkdir()
        for number in range(1, 300):
            (self.canary / str(number)).symlink_to("0")
        (self.canary / "0/victim").write_text("canary")
        (tree / "e").symlink_to(self.canary)
        exchange, libc, ended = 2, ctypes.CDLL(None, use_errno=True), threading.Event()

        def race():
            while not ended.is_set():
                libc.renameat2(-100, str(tree / "d").encode(), -100, str(tree / "e").encode(), exchange)

        racer = threading.Thread(target=race)
        racer.start()
        try:
            for number in range(12):
                result = self.image("import", "-q", tree, f"raced:{number}")
                self.assertIn(result.status, (0, 125), result.text)
                for blob in (self.store / "blobs/sha256").iterdir():
                    self.assertNotIn(b"canary\0", blob.read_bytes().replace(str(self.canary).encode(), b""), "a file of the link's target is in the image")
        finally:
            ended.set()
            racer.join()

    def test_names_and_record_count_against_the_quota(self):
        self.set_quota("500K")
        for length, refused in ((250, "the names of the layer exceed the size limit"), (100, "than the quota of the image store leaves")):
            archive = self.scratch / "names.tar.gz"
            archive.write_bytes(many(3000, lambda number, noise, size=length: long_name(b"L", noise.ljust(size, b"n")) + raw_header(b"n")))
            self.assertLess(archive.stat().st_size, 200 << 10)
            result = self.image("import", "-q", archive, "long:1")
            self.assertEqual(result.status, 125, result.text)
            self.assertIn(refused, result.err)
            self.assert_store_clean()

    def test_decoder_has_no_network_and_no_files(self):
        # CONFORMS("R-IMAGE-3")
        # The audit log has the level and network of each decoder's sandbox.
        archive = self.write_tar("r.tar", [entry("f", b"x")])
        self.must("import", archive, "root:1")
        shown = self.run_program(CAISSON, "audit", "show", "--json")
        runs = [line for line in shown.out.splitlines() if "caisson-unpack" in line]
        self.assertTrue(runs, shown.text[:2000])
        for line in runs:
            self.assertEqual({"level": "full", "network": "none"}, {key: json.loads(line)["data"][key] for key in ("level", "network")})


class HostileDocuments(ImageTest):
    def refused(self, expected, **options):
        path = self.scratch / f"layout{len(list(self.scratch.iterdir()))}"
        oci_layout(path, [tar_bytes([entry("f", b"x")])], name="1", **options)
        result = self.image("import", "-q", path, "bad:1")
        self.assertEqual(result.status, 125, result.text)
        self.assertIn(expected, result.err)

    def test_manifests_that_lie_are_refused(self):
        # CONFORMS("R-IMAGE-2")
        def change(**members):
            return lambda manifest: manifest.update(members)

        self.refused("different layers", diff_ids=["sha256:" + "0" * 64] * 2)
        self.refused("not an image manifest", manifest_change=change(manifests=[]))
        self.refused("schema version", manifest_change=change(schemaVersion=1))
        self.refused("unknown layer type", manifest_change=lambda one: one["layers"][0].update(mediaType="text/html"))
        self.refused("digest", manifest_change=lambda one: one["layers"][0].update(digest="sha256:../../../etc/passwd"))
        self.refused("digest", manifest_change=lambda one: one["config"].update(digest="sha512:" + "0" * 128))
        self.refused("not a container image", manifest_change=lambda one: one["config"].update(mediaType="application/vnd.wasm"))
        self.refused("more than 256 layers", manifest_change=lambda one: one.update(layers=one["layers"] * 300))

    def test_docker_archive_that_names_other_files_is_refused(self):
        for name in ("../../../../etc/passwd", "/etc/passwd", "missing.json", ""):
            manifest = json.dumps([{"Config": name, "Layers": [], "RepoTags": ["x:1"]}]).encode()
            path = self.write_tar("d.tar", [entry("0" * 64 + ".json", b"{}"), entry("manifest.json", manifest)])
            self.assertEqual(self.image("import", "-q", path).status, 125)

    def docker_archive(self, names):
        """The path of an archive of `docker save` with one image."""
        layer = tar_bytes([entry("f", b"x")])
        machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(os.uname().machine, os.uname().machine)
        config = json.dumps({"os": "linux", "architecture": machine, "rootfs": {"type": "layers", "diff_ids": [sha256(layer)]}}).encode()
        manifest = json.dumps([{"Config": "config.json", "Layers": ["0" * 64 + "/layer.tar"], "RepoTags": names}]).encode()
        return self.write_tar("docker.tar", [entry("0" * 64 + "/layer.tar", layer), entry("config.json", config), entry("manifest.json", manifest)])

    def test_archive_of_too_many_names_is_refused(self):
        self.must("import", "-q", self.docker_archive(["first:1", "second:1"]))
        before = (self.store / "index.json").read_text()
        result = self.image("import", "-q", self.docker_archive([f"n{number}:1" for number in range(5000)]))
        self.assertEqual(result.status, 125, result.text)
        self.assertIn("too many names", result.err)
        self.assertEqual((self.store / "index.json").read_text(), before)
        self.assert_store_clean()

    def test_full_index_is_refused_before_it_cannot_be_read(self):
        self.must("import", "-q", self.docker_archive(["first:1"]))
        path = self.store / "index.json"
        index = json.loads(path.read_text())
        (known,) = index["manifests"]
        name = "org.opencontainers.image.ref.name"
        index["manifests"] += [dict(known, annotations={name: f"docker.io/library/n{number}:1"}) for number in range(4095)]
        path.write_text(json.dumps(index))
        before = path.read_text()
        archive = self.write_tar("r.tar", [entry("g", b"y")])
        for words in (("tag", "first:1", "one:more"), ("import", "-q", archive, "one:more")):
            result = self.image(*words)
            self.assertEqual(result.status, 125, result.text)
            self.assertIn("more than 4096 names", result.err)
            self.assertEqual(path.read_text(), before)
        self.assertEqual(len(list((self.store / "layers").iterdir())), 1, "a refused import changes nothing")
        self.must("remove", "n1:1")
        self.must("import", "-q", archive, "one:more")
        self.must("list")

    def test_name_of_the_build_cache_is_reserved(self):
        reserved = "localhost/caisson-build-cache:" + "0" * 64
        for names in ([reserved], ["first:1", reserved]):
            result = self.image("import", "-q", self.docker_archive(names))
            self.assertEqual(result.status, 125, result.text)
            self.assertIn("reserved for the cache of builds", result.err)
        self.assertEqual(json.loads((self.store / "index.json").read_text())["manifests"], [])
        path = self.scratch / "reserved"
        oci_layout(path, [tar_bytes([entry("f", b"x")])], name=reserved)
        self.assertIn("reserved", self.image("import", "-q", path).err)
        self.assertIn("reserved", self.image("import", "-q", path, reserved).err)
        self.must("import", "-q", self.docker_archive(["first:1"]))
        self.assertIn("reserved", self.image("tag", "first:1", reserved).err)
        self.assertIn("reserved", self.image("pull", "-q", reserved).err)
