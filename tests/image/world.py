"""Shared by the image suites: a scratch directory with a private CAISSON_HOME, the program, and archives."""
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

CAISSON = os.environ.get("CAISSON_BIN", "")
TIMEOUT = 120


def needs(*programs):
    """Skips a test whose tools are not installed, with the reason."""
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Result:
    def __init__(self, done):
        self.status = done.returncode
        self.out = done.stdout.decode(errors="replace")
        self.err = done.stderr.decode(errors="replace")
        self.text = self.out + self.err


def entry(name, data=b"", **fields):
    """Returns a tar entry and its data."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    info.mode = 0o644
    for key, value in fields.items():
        setattr(info, key, value)
    return info, data


def directory(name, **fields):
    return entry(name, type=tarfile.DIRTYPE, mode=fields.pop("mode", 0o755), **fields)


def link(name, target, **fields):
    return entry(name, type=tarfile.SYMTYPE, linkname=target, mode=0o777, **fields)


def hard_link(name, target, **fields):
    return entry(name, type=tarfile.LNKTYPE, linkname=target, **fields)


# The root of a small image.
ROOT = [directory("bin"), entry("bin/tool", b"#!/bin/sh\n", mode=0o755), directory("etc"), entry("etc/motd", b"hello\n"),
        link("lib", "usr/lib"), hard_link("bin/other", "bin/tool"), directory("tmp", mode=0o1777), directory("root", mode=0o500)]


def tar_bytes(entries, layout=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=layout) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def oci_layout(path, layers, config=None, name=None, types=None, diff_ids=None, manifest_change=None):
    """Writes an OCI layout; `layers` are the bytes of blobs. Returns the digest of the manifest."""
    blobs = path / "blobs/sha256"
    blobs.mkdir(parents=True)

    def add(data, media_type):
        (blobs / sha256(data)[7:]).write_bytes(data)
        return {"mediaType": media_type, "digest": sha256(data), "size": len(data)}

    layer_type = "application/vnd.oci.image.layer.v1.tar"
    described = [add(data, (types or {}).get(at, layer_type)) for at, data in enumerate(layers)]
    machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(os.uname().machine, os.uname().machine)
    config = dict(config or {}, os="linux", architecture=machine,
                  rootfs={"type": "layers", "diff_ids": diff_ids or [sha256(data) for data in layers]})
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": add(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
                "layers": described}
    if manifest_change:
        manifest_change(manifest)
    entry_of_index = add(json.dumps(manifest).encode(), manifest["mediaType"])
    if name:
        entry_of_index["annotations"] = {"org.opencontainers.image.ref.name": name}
    (path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry_of_index]}))
    (path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    return entry_of_index["digest"]


class ImageTest(unittest.TestCase):
    """A scratch directory per test."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="caisson-image-"))
        self.addCleanup(self.remove_scratch)
        self.home = self.scratch / "home"
        self.environment = dict(os.environ, CAISSON_HOME=str(self.home), HOME=str(self.scratch),
                                XDG_CONFIG_HOME=str(self.scratch / "config"))
        for name in ("XDG_RUNTIME_DIR", "DOCKER_CONFIG", "REGISTRY_AUTH_FILE"):
            self.environment.pop(name, None)

    def remove_scratch(self):
        # Only files that the suite and caisson wrote; rmtree does not follow links.
        for root, names, _ in os.walk(self.scratch):
            for name in names:
                path = os.path.join(root, name)
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def store(self):
        return self.home / "images"

    def run_program(self, *command, timeout=TIMEOUT, **options):
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, env=options.pop("env", self.environment), check=False, **options)
        return Result(done)

    def image(self, *words, **options):
        return self.run_program(CAISSON, "image", *words, **options)

    def must(self, *words, **options):
        result = self.image(*words, **options)
        self.assertEqual(result.status, 0, f"caisson image {words}: {result.text}")
        return result

    def write_tar(self, name, entries, layout=tarfile.PAX_FORMAT):
        path = self.scratch / name
        path.write_bytes(tar_bytes(entries, layout))
        return path

    def inspect(self, reference):
        return json.loads(self.must("inspect", reference).out)[0]

    def roots(self, reference):
        """Returns the unpacked directories, bottom first."""
        return [pathlib.Path(layer["Directory"]) for layer in self.inspect(reference)["Layers"]]

    def assert_store_clean(self):
        self.assertEqual(list((self.store / "tmp").iterdir()), [], "leftovers in tmp/")
        self.assertEqual(self.must("verify").out.strip().split(": ")[-1], "verified")
