"""Images from and for other tools: podman, buildah, umoci and skopeo. All state is below the scratch directory."""
import io
import json
import os
import subprocess
import tarfile
import time
import unittest

from world import CAISSON, ImageTest, directory, entry, hard_link, link, needs, oci_layout, sha256, tar_bytes

LAYERS = [tar_bytes([directory("etc"), entry("etc/motd", b"hello\n"), entry("bin/tool", b"x", mode=0o755), link("lib", "bin"), hard_link("bin/two", "bin/tool")]),
          tar_bytes([entry("etc/.wh.motd"), entry("etc/new", b"new")])]


class Interop(ImageTest):
    def setUp(self):
        super().setUp()
        self.digest = oci_layout(self.scratch / "app", LAYERS, {"config": {"Cmd": ["sh"]}}, name="1")

    def podman(self, *words, program="podman"):
        folder = self.scratch / "engine"
        folder.mkdir(exist_ok=True)
        storage = ["--root", folder / "root", "--runroot", folder / "run", "--storage-driver", "vfs"]
        done = self.run_program(program, *storage, *words)
        self.assertEqual(done.status, 0, f"{program} {words}: {done.text}")
        return done.out.strip()

    def identity(self, reference):
        shown = self.inspect(reference)
        return shown["Id"], [layer["DiffID"] for layer in shown["Layers"]]

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("podman and buildah need subordinate ids or root")

    @needs("podman")
    def test_podman_save_and_load_keep_config_and_diff_ids(self):
        # CONFORMS("R-IMAGE-1")
        self.need_root()
        self.podman("pull", "-q", f"oci:{self.scratch}/app:1")
        identifier = self.podman("images", "-q", "--no-trunc").splitlines()[0]
        self.podman("tag", identifier, "localhost/app:1")
        for kind in ("oci-archive", "docker-archive"):
            self.podman("save", "-q", "--format", kind, "-o", self.scratch / f"{kind}.tar", "localhost/app:1")
        for kind in ("oci-archive", "docker-archive"):
            self.must("import", "-q", self.scratch / f"{kind}.tar", f"podman/{kind}:1")
            config, diff_ids = self.identity(f"podman/{kind}:1")
            self.assertEqual(diff_ids, [sha256(layer) for layer in LAYERS])
            if kind == "oci-archive":
                self.assertEqual(config, "sha256:" + identifier.removeprefix("sha256:"))
            for form in ("oci", "docker"):
                back = self.scratch / f"back-{kind}-{form}.tar"
                self.must("save", "-q", f"podman/{kind}:1", back, "--format", form)
                self.podman("rmi", "-f", "--all")
                self.podman("load", "-q", "-i", back)
                self.assertEqual(self.podman("images", "-q", "--no-trunc").splitlines()[0].removeprefix("sha256:"), config[7:])
        self.assert_store_clean()

    @needs("buildah")
    def test_buildah_image_is_imported(self):
        self.need_root()
        (self.scratch / "Containerfile").write_text("FROM scratch\nCOPY app/oci-layout /copied\nENV A=b\nCMD [\"sh\"]\n")
        self.podman("build", "-q", "--isolation", "chroot", "-t", "localhost/built:1", self.scratch, program="buildah")
        self.podman("push", "-q", "localhost/built:1", f"oci-archive:{self.scratch}/built.tar:built:1", program="buildah")
        self.must("import", "-q", self.scratch / "built.tar", "built:1")
        self.assertIn("A=b", self.inspect("built:1")["Config"]["Env"])
        self.assertTrue((self.roots("built:1")[-1] / "copied").exists())
        identifier = json.loads(self.podman("inspect", "--type", "image", "localhost/built:1", program="buildah"))["FromImageID"]
        self.assertEqual(self.inspect("built:1")["Id"], "sha256:" + identifier)

    @needs("umoci")
    def test_umoci_layout_is_imported_and_ours_is_unpacked(self):
        layout = self.scratch / "umoci"
        self.assertEqual(self.run_program("umoci", "init", "--layout", layout).status, 0)
        self.assertEqual(self.run_program("umoci", "new", "--image", f"{layout}:1").status, 0)
        added = self.run_program("umoci", "insert", "--rootless", "--image", f"{layout}:1", self.scratch / "app/oci-layout", "/copied")
        self.assertEqual(added.status, 0, added.text)
        self.must("import", "-q", layout)
        self.assertTrue((self.roots("umoci:1")[0] / "copied").exists())
        self.must("import", "-q", self.scratch / "app")
        self.must("save", "-q", "app:1", self.scratch / "ours.tar")
        ours = self.scratch / "ours"
        ours.mkdir()
        self.run_program("tar", "-C", ours, "-xf", self.scratch / "ours.tar")
        unpacked = self.run_program("umoci", "unpack", "--rootless", "--image", f"{ours}:1", self.scratch / "bundle")
        self.assertEqual(unpacked.status, 0, unpacked.text)
        self.assertEqual((self.scratch / "bundle/rootfs/etc/new").read_text(), "new")
        self.assertFalse((self.scratch / "bundle/rootfs/etc/motd").exists())

    @needs("skopeo")
    def test_skopeo_reads_the_store_and_archives(self):
        # CONFORMS("R-IMAGE-4")
        self.must("import", "-q", self.scratch / "app")
        copied = self.run_program("skopeo", "--insecure-policy", "copy", "--preserve-digests", f"oci:{self.store}:docker.io/library/app:1", f"dir:{self.scratch}/copy")
        self.assertEqual(copied.status, 0, copied.text)
        self.assertEqual(sha256((self.scratch / "copy/manifest.json").read_bytes()), self.digest)
        for kind in ("oci-archive", "docker-archive"):
            target = f"{kind}:{self.scratch}/{kind}.tar:skopeo/app:2"
            copied = self.run_program("skopeo", "--insecure-policy", "copy", f"oci:{self.scratch}/app:1", target)
            self.assertEqual(copied.status, 0, copied.text)
            self.must("import", "-q", self.scratch / f"{kind}.tar", f"skopeo/{kind}:2")
            self.assertEqual(self.identity(f"skopeo/{kind}:2"), self.identity("app:1"))

    @needs("mmdebstrap")
    def test_recipe_is_built(self):
        # CONFORMS("R-USE-6")
        self.need_root()
        built = self.image("build", "-q", "--recipe", "python", "-t", "python:local", timeout=500)
        if "mmdebstrap failed" in built.err:
            self.skipTest("mmdebstrap found no packages")
        self.assertEqual(built.status, 0, built.text)
        run = self.run_program(CAISSON, "run", "--image", "python:local", "--", "python3", "-c", "print(6 * 7)")
        self.assertEqual(run.out, "42\n", run.text)
        bill = json.loads((self.roots("python:local")[-1] / "usr/share/sbom/image.spdx.json").read_text())
        self.assertIn("python3", [package["name"] for package in bill["packages"]])

    @needs("mmdebstrap")
    def test_debian_root_is_imported(self):
        self.need_root()
        built = self.run_program("mmdebstrap", "--variant=essential", "--mode=root", "bookworm", self.scratch / "debian.tar", timeout=400)
        if built.status != 0:
            self.skipTest(f"mmdebstrap found no packages: {built.err.strip().splitlines()[-1:]}")
        self.must("import", "-q", self.scratch / "debian.tar", "debian:bookworm")
        (root,) = self.roots("debian:bookworm")
        self.assertTrue((root / "usr/bin/dpkg").exists())
        self.assert_store_clean()


@unittest.skipUnless(os.environ.get("CAISSON_MEASURE"), "a measurement, for an idle machine: set CAISSON_MEASURE=1")
class Speed(ImageTest):
    @needs("podman")
    def test_large_image_is_imported_as_fast_as_podman_loads_it(self):
        # CONFORMS("R-IMAGE-7")
        if os.geteuid() != 0:
            self.skipTest("podman needs subordinate ids or root")
        archive = self.large_archive()
        podman_time = self.timed(["podman", "--root", str(self.scratch / "pr"), "--runroot", str(self.scratch / "prr"), "load", "-q", "-i", str(archive)])[0]
        own_time, own_memory = self.timed([CAISSON, "image", "import", "-q", str(archive), "large:1"])
        print(f"podman load {podman_time:.1f} s, caisson image import {own_time:.1f} s, {own_memory >> 20} MiB")
        self.assertLess(own_memory, 256 << 20)
        self.assertLess(own_time, 1.3 * podman_time)

    def large_archive(self):
        """Creates a docker-archive of 1 GiB in 60,000 files."""
        layer = self.scratch / "layer.tar"
        with tarfile.open(layer, "w") as out:
            for at in range(60000):
                out.addfile(*self.large_file(at))
        diff_id = subprocess.run(["sha256sum", str(layer)], check=True, stdout=subprocess.PIPE).stdout.decode().split()[0]
        config = json.dumps({"os": "linux", "architecture": os.uname().machine, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + diff_id]}}).encode()
        name = sha256(config)[7:]
        archive = self.scratch / "large.tar"
        with tarfile.open(archive, "w") as out:
            out.add(layer, f"{diff_id}.tar")
            for info, data in (entry(f"{name}.json", config), entry("manifest.json", json.dumps([{"Config": f"{name}.json", "RepoTags": ["large:1"], "Layers": [f"{diff_id}.tar"]}]).encode())):
                out.addfile(info, io.BytesIO(data))
        layer.unlink()
        return archive

    @staticmethod
    def large_file(at):
        data = os.urandom(64) * 280
        info, _ = entry(f"d{at // 200}/f{at}", data)
        return info, io.BytesIO(data)

    def timed(self, command):
        os.sync()
        began = time.monotonic()
        done = subprocess.run(["/usr/bin/time", "-f", "%M", *command], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, timeout=500)
        self.assertEqual(done.returncode, 0, done.stderr)
        return time.monotonic() - began, int(done.stderr.split()[-1]) * 1024
