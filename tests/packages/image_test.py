#!/usr/bin/env python3
"""The container image: its metadata, and caisson in it with Podman and Docker as described in docs/containers.md.

Needs root and the built image. The engines run in the namespaces of tests/containers/world.py.
"""
from __future__ import annotations

import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path[:0] = [str(HERE), str(SOURCE / "tests" / "containers")]
import debian_root  # noqa: E402
import engines  # noqa: E402
import world  # noqa: E402
from debian_root import ARCHITECTURE, package  # noqa: E402

INSIDE = "CAISSON_IMAGE_TEST_WORLD"  # the directory of the world; set in its namespaces
USER = "caisson-tester"
PROFILES = SOURCE / "packaging" / "seccomp"
STATE = "caisson-state:/var/lib/caisson"
PREFIX = "org.opencontainers.image."


def image() -> pathlib.Path:
    return package(f"caisson-*-image-{ARCHITECTURE}.tar")


def version() -> str:
    return image().name.split("-")[1]


def name() -> str:
    return f"localhost/caisson:{version()}"


def layers() -> list[bytes]:
    with tarfile.open(image()) as archive:
        manifest = json.load(archive.extractfile("manifest.json"))[0]
        return [gzip.decompress(archive.extractfile(path).read()) for path in manifest["Layers"]]


class Archive(unittest.TestCase):
    def test_SkopeoReadsConfigurationAndLabels(self) -> None:
        config = json.loads(engines.command("skopeo", "inspect", "--config", f"oci-archive:{image()}"))
        self.assertEqual(config["os"], "linux")
        self.assertEqual(config["config"]["User"], "10001:10001")
        self.assertEqual(config["config"]["Volumes"], {"/var/lib/caisson": {}})
        self.assertEqual(config["config"]["Entrypoint"], ["caisson"])
        labels = config["config"]["Labels"]
        self.assertEqual(labels[PREFIX + "version"], version())
        for label in ("title", "description", "licenses", "created", "base.name"):
            self.assertTrue(labels[PREFIX + label], label)
        for transport in ("oci-archive", "docker-archive"):
            described = json.loads(engines.command("skopeo", "inspect", f"{transport}:{image()}"))
            self.assertEqual(len(described["Layers"]), 2, transport)

    def test_LayersNameNothingOfTheBuildMachine(self) -> None:
        """The package mirror, host name, resolver and machine id of the build machine must not be in the layers."""
        sources = "".join(path.read_text() for path in pathlib.Path("/etc/apt").rglob("*") if path.suffix in (".list", ".sources"))
        hosts = {host for host in re.findall(r"^(?:URIs:|deb\b).*?://([^/\s]+)", sources, re.M) if not host.endswith("debian.org")}
        for layer in layers():
            for host in hosts:
                self.assertNotIn(host.encode(), layer)
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                paths = archive.getnames()
                for path in ("etc/hostname", "etc/resolv.conf", "etc/machine-id"):
                    self.assertNotIn(path, paths)

    def test_StateIsPrivateToTheUser(self) -> None:
        with tarfile.open(fileobj=io.BytesIO(layers()[1])) as archive:
            state, workspace = archive.getmember("var/lib/caisson"), archive.getmember("workspace")
            self.assertEqual((state.uid, state.gid, state.mode), (10001, 10001, 0o700))
            self.assertEqual((workspace.uid, workspace.gid), (10001, 10001))
            self.assertIn(b"caisson:x:10001:10001:", archive.extractfile("etc/passwd").read())
            self.assertTrue(any(path.endswith("/caisson/LICENSE") for path in archive.getnames()))


class Engines(unittest.TestCase):
    """Containers of the image, without network access."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = world.furnish(pathlib.Path(os.environ[INSIDE]))
        cls.profile = cls.place / "podman.json"
        cls.profile.write_text(engines.command(sys.executable, PROFILES / "make_profile.py", "--extend",
                                               "/usr/share/containers/seccomp.json"))

    def directory(self, engine: str) -> pathlib.Path:
        path = self.place / engine
        path.mkdir(mode=0o755)
        return path

    def check_podman(self, podman: engines.Podman) -> None:
        with open(image(), "rb") as archive:
            podman.podman("load", stdin=archive)

        def run(*arguments: str, flags: tuple[str, ...] = ()) -> str:
            return podman.podman("run", "--rm", *podman.run_flags, *flags, name(), *arguments)

        confined = ("--security-opt", f"seccomp={self.profile}", "--security-opt", "unmask=ALL", "-v", STATE)
        self.assertIn(version(), run("version"))
        self.assertIn("full", run(flags=confined))  # doctor is the default command
        self.assertIn("uid=1000(sandbox)", run("run", "--", "id", flags=confined))
        self.assertIn("uid=1000(sandbox)", run("run", "--allow-weaker", "proc_bound", "--", "id"))
        session = run("session", "create", "--workspace", "/workspace", flags=confined).strip()
        self.assertIn(session, run("session", "list", flags=confined), "the volume keeps sessions")
        run("mcp", flags=confined)
        run("self", "verify")
        self.assertIn("Apache License", run("version", "--licenses"))

    def test_PodmanLoadsAndRunsIt(self) -> None:
        self.check_podman(engines.Podman(self.directory("podman"), None))

    def test_RootlessPodmanLoadsAndRunsIt(self) -> None:
        self.check_podman(engines.Podman(self.directory("podman-rootless"), None, USER))

    def test_DockerLoadsAndRunsIt(self) -> None:
        containerd = engines.Containerd(self.directory("containerd"), None)
        self.addCleanup(containerd.stop)
        docker = engines.Docker(self.directory("docker"), None, containerd)
        self.addCleanup(docker.stop)
        docker.docker("load", "-i", image())
        flags = ["--security-opt", f"seccomp={PROFILES / 'caisson.json'}", "--security-opt", "systempaths=unconfined", "-v", STATE]
        self.assertIn("uid=1000(sandbox)", docker.run(flags, [], {}, ["run", "--", "id"], name()))
        self.assertIn("full", docker.run(flags, [], {}, ["doctor"], name()))
        self.assertIn("uid=", docker.run([], [], {}, ["run", "--tier", "landlock", "--", "id"], name()))


def enter() -> int:
    """Runs this file in a world and reports files left on the machine as failures."""
    if subprocess.run(["id", "-u", USER], capture_output=True, check=False).returncode != 0:
        engines.command("useradd", "-m", "-s", "/bin/sh", USER)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="caisson-im-"))
    directory.chmod(0o755)
    os.environ[INSIDE] = str(directory)
    try:
        status, left = world.enter(directory, __file__, sys.argv[1:])
    finally:
        # Only files of this test: files of containers were on the disk image, which is removed.
        for path in directory.iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        directory.rmdir()
    # Other programs of this machine use loop devices too.
    left = [line for line in left if not line.startswith("loop devices") or directory.name in line]
    if left:
        print("FAILED left on the machine: " + "; ".join(left) + "\n0 passed, 1 failed, 0 skipped")
    return 1 if left else status


if __name__ == "__main__":
    if os.geteuid() == 0 and INSIDE not in os.environ:
        sys.exit(enter())
    debian_root.main()
