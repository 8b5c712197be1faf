#!/usr/bin/env python3
"""The Debian packages and the tarball in fresh roots of Debian 12 and 13: install, use, upgrade, remove; and the packages
in booted machines. Needs root and the built packages. The roots have no network. Packages of another architecture are
only checked by lintian and used in booted machines."""
from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import debian_root  # noqa: E402
from debian_root import ARCHITECTURE, CROSS, HERE, HOME, SOURCE, USER, RootTest, archive, package  # noqa: E402

NAMES = ("caisson", "caisson-server", "libcaisson-dev")
KERNELS = {"bookworm": "6.1", "trixie": "6.12"}
OLDER = "0.1.9"
PROFILE = "/etc/apparmor.d/caisson"
DISABLED = "/etc/apparmor.d/disable/caisson"
# Packages to boot the machine, for the README's examples, and the libraries that the packages depend on.
BASE = "busybox-static,iproute2,libarchive13,libcurl4,make,procps,python3"
COMPILER = "cmake,g++,libarchive13,libcurl4,make,python3"
STATE = re.compile(rf"{HOME}/\.local/share/caisson(/.*)? .*|{HOME}/\.local(/share)? 7[05][05]")
DPKG_RECORDS = re.compile(r"/var/lib/dpkg/(status|status-old|lock|lock-frontend|available|triggers/\S*) .*"
                          r"|/var/log/(dpkg|alternatives)\.log .*")
REQUEST = """
import http.client, socket, sys
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request("GET", "/v1/openapi.json")
answer = connection.getresponse()
print(answer.status, "openapi" in answer.read().decode())
"""


def packages(*names: str) -> list[pathlib.Path]:
    return [package(f"{name}_*_{ARCHITECTURE}.deb") for name in names]


def field(path: pathlib.Path, name: str) -> str:
    return subprocess.run(["dpkg-deb", "--field", path, name], capture_output=True, text=True, check=True).stdout.strip()


def repacked(path: pathlib.Path, directory: pathlib.Path, version: str, profile: str | None = None) -> pathlib.Path:
    """Returns the package with another version, and with another AppArmor profile if one is given."""
    tree = directory / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", path, tree], check=True)
    control = tree / "DEBIAN" / "control"
    control.write_text(control.read_text().replace(field(path, "Version"), version))
    if profile is not None:
        (tree / PROFILE.lstrip("/")).write_text(profile)
    made = directory / f"{field(path, 'Package')}_{version}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, made], check=True, capture_output=True)
    shutil.rmtree(tree)
    return made


def small_package(directory: pathlib.Path, name: str, files: dict[str, str]) -> pathlib.Path:
    tree = directory / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN" / "control").write_text(f"Package: {name}\nVersion: 4\nArchitecture: all\nMaintainer: test <test@test.invalid>\n"
                                             "Description: test\n")
    for path, text in files.items():
        file = tree / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    made = directory / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, made], check=True, capture_output=True)
    shutil.rmtree(tree)
    return made


class Archives(unittest.TestCase):
    def test_LintianFindsNoErrors(self) -> None:
        done = subprocess.run(["lintian", "--no-cfg", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0",
                               *packages(*NAMES)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("E:")], [])

    def test_OwnersModesAndVersionsAreFixed(self) -> None:
        self.assertEqual(len({field(path, "Version") for path in packages(*NAMES)}), 1)
        for path in packages(*NAMES):
            listing = subprocess.run(["dpkg-deb", "--contents", path], capture_output=True, text=True, check=True).stdout
            times = set()
            for line in listing.splitlines():
                mode, owner, _, day, time, _ = line.split(maxsplit=5)
                self.assertIn(mode, ("drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxrwxrwx"), line)
                self.assertEqual(owner, "root/root", line)
                times.add((day, time))
            self.assertEqual(len(times), 1, path)


class DebianTest(RootTest):
    """Each test starts with a root without the packages, and removes them at the end."""

    packages, kind = BASE, "debian"

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="caisson-debian-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.before = cls.root.files()

    def dpkg(self, *arguments: str, **options) -> str:
        return self.root.output("dpkg", *arguments, user="root", cwd="/", **options)

    def install(self, *paths: pathlib.Path, flags: tuple[str, ...] = ()) -> str:
        for path in paths:
            self.root.put(f"/var/tmp/{path.name}", path.read_bytes(), user="root")
        try:
            return self.dpkg("--install", *flags, *(f"/var/tmp/{path.name}" for path in paths))
        finally:
            self.root.run("rm", *(f"/var/tmp/{path.name}" for path in paths), user="root")

    def purge(self, *names: str) -> None:
        self.dpkg("--purge", *names)
        self.check_only_state_is_left()

    def check_only_state_is_left(self) -> None:
        after = self.root.files()
        self.assertEqual([line for line in sorted(after - self.before) if not STATE.fullmatch(line) and not DPKG_RECORDS.fullmatch(line)], [])
        self.assertEqual([line for line in sorted(self.before - after) if not DPKG_RECORDS.fullmatch(line)], [])

    def check_use(self, program: str) -> None:
        self.assertEqual(self.root.output(program, "run", "--", "id", "-u", cwd="/tmp"), "1000")
        self.root.run(program, "doctor")
        self.check_readme(program)
        self.root.run(program, "verify")

    def check_server(self, program: str) -> None:
        """Checks that the server responds on its socket, and exits on SIGTERM."""
        script = ('mkdir /tmp/server && cd /tmp/server && "$1" serve --listen none --socket /tmp/server/api >log 2>&1 & server=$!; '
                  'until [ -S /tmp/server/api ]; do kill -0 $server || { cat /tmp/server/log; exit 1; }; sleep 0.1; done; '
                  'python3 -c "$0" /tmp/server/api; kill $server; wait $server; rm -r /tmp/server')
        self.assertEqual(self.root.output("timeout", "60", "sh", "-c", script, REQUEST, program), "200 True")


class OnDebian12(DebianTest):
    def test_PackagesInstallRunAndLeaveOnlyState(self) -> None:
        self.install(*packages("caisson", "caisson-server"))
        self.assertEqual(self.root.output("find", "/etc/systemd", "-name", "caisson*", user="root"), "")  # nothing is enabled
        for path in ("/usr/lib/systemd/user/caisson.socket", "/usr/lib/systemd/system/caisson.socket", "/usr/share/man/man1/caisson.1.gz",
                     "/usr/share/bash-completion/completions/caisson", "/usr/share/doc/caisson/copyright"):
            self.root.run("test", "-s", path)
        self.assertIn(field(packages("caisson")[0], "Version"), self.root.output("caisson", "version"))
        self.assertEqual(self.root.output("dpkg", "--verify", user="root"), "")
        self.root.put("/tmp/key", package("caisson-signing.pub").read_bytes())
        self.root.run("caisson", "self", "verify", "--key", "/tmp/key")
        self.root.run("rm", "/tmp/key")
        self.root.run("caisson", "image", "list")
        self.check_server("caisson")
        self.check_use("/usr/bin/caisson")
        self.purge("caisson-server", "caisson")

    def test_TarballRunsAndLeavesOnlyState(self) -> None:
        path = package(f"caisson-*-linux-{os.uname().machine}.tar.gz")
        name = path.name.removesuffix(".tar.gz")
        self.root.run("tar", "-xzf", "-", "-C", HOME, stdin=path.read_bytes())
        program = f"{HOME}/{name}/bin/caisson"
        self.check_server(program)
        self.check_use(program)
        self.root.run("rm", "-r", f"{HOME}/{name}")
        self.check_only_state_is_left()

    def test_UpgradeKeepsLiveSession(self) -> None:
        names = ("caisson", "caisson-server")
        self.install(*(repacked(path, self.directory, OLDER) for path in packages(*names)))
        self.addCleanup(self.dpkg, "--purge", *reversed(names), check=False)
        self.root.run("mkdir", "-p", f"{HOME}/project")
        self.addCleanup(self.root.run, "rm", "-r", f"{HOME}/project")
        session = self.root.output("caisson", "session", "create", cwd=f"{HOME}/project")
        self.root.run("caisson", "session", "exec", session, "--", "sh", "-c", "echo 1 >file")
        self.root.run("caisson", "session", "checkpoint", session, "good")
        self.install(*packages(*names))
        self.assertEqual(self.dpkg("--status", "caisson").split("Version: ")[1].split()[0], field(packages("caisson")[0], "Version"))
        self.assertEqual(self.root.output("caisson", "session", "exec", session, "--", "cat", "file"), "1")
        self.root.run("caisson", "session", "exec", session, "--", "rm", "file")
        self.root.run("caisson", "session", "restore", session, "good")
        self.assertEqual(self.root.output("caisson", "session", "read", session, "file"), "1")
        self.root.run("caisson", "session", "destroy", session)

    def test_ChangedProfileSurvivesUpgrade(self) -> None:
        self.addCleanup(self.dpkg, "--purge", "caisson", check=False)
        new = packages("caisson")[0]
        old = repacked(new, self.directory, OLDER, "# an older profile\n")
        shipped = (SOURCE / "packaging" / "apparmor" / "caisson").read_text().strip()
        self.install(old)
        self.install(new)
        self.assertEqual(self.root.output("cat", PROFILE, user="root"), shipped)
        self.dpkg("--purge", "caisson")
        self.install(old)
        self.root.put(PROFILE, "# an administrator's profile\n", user="root")
        self.install(new, flags=("--force-confold",))
        self.assertEqual(self.root.output("cat", PROFILE, user="root"), "# an administrator's profile")
        self.assertEqual(self.root.output("cat", f"{PROFILE}.dpkg-dist", user="root"), shipped)
        self.root.run("rm", PROFILE, user="root")
        self.install(new)
        self.root.run("test", "!", "-e", PROFILE, user="root")  # a removed profile stays removed
        self.purge("caisson")

    def test_ProfileIsDisabledUntilAppArmorKnowsIt(self) -> None:
        self.addCleanup(self.dpkg, "--purge", "caisson", "apparmor", check=False)
        caisson = packages("caisson")[0]
        link = ("readlink", DISABLED)
        parser = {"/usr/sbin/apparmor_parser": "#!/bin/sh\nexit 1\n", "/etc/apparmor.d/disable/README": ""}
        self.install(caisson)
        self.assertEqual(self.root.output(*link), "../caisson")
        self.install(small_package(self.directory, "apparmor", {**parser, "/etc/apparmor.d/abi/3.0": ""}))
        self.assertEqual(self.root.output(*link), "../caisson")
        self.install(small_package(self.directory, "apparmor", {**parser, "/etc/apparmor.d/abi/4.0": ""}))
        self.root.run("test", "!", "-e", DISABLED)
        self.root.run("sh", "-c", f"mkdir -p {os.path.dirname(DISABLED)} && ln -sf {PROFILE} {DISABLED}", user="root")
        self.install(caisson)
        self.assertEqual(self.root.output(*link), PROFILE)  # the administrator's
        self.dpkg("--purge", "caisson", "apparmor")
        self.check_only_state_is_left()


class OnDebian13(OnDebian12):
    suite = "trixie"


class LibraryOnDebian12(DebianTest):
    packages, kind = COMPILER, "debian-compiler"

    def test_ExampleBuildsAndRuns(self) -> None:
        self.install(*packages("libcaisson-dev"))
        for name in ("CMakeLists.txt", "main.cc"):
            self.root.put(f"{HOME}/example/{name}", (SOURCE / "examples" / "run_python" / name).read_bytes())
        self.root.run("cmake", "-B", "build", cwd=f"{HOME}/example")
        self.root.run("cmake", "--build", "build", cwd=f"{HOME}/example")
        self.assertEqual(self.root.output("build/run_python", cwd=f"{HOME}/example"), "hello from uid 1000")
        self.root.run("rm", "-r", f"{HOME}/example")
        self.purge("libcaisson-dev")


class LibraryOnDebian13(LibraryOnDebian12):
    suite = "trixie"


def disk(suite: str) -> pathlib.Path:
    """Creates a disk from the root, which tests/vm boots."""
    tar = archive(suite, BASE, "debian")
    path = tar.with_suffix(".ext4")
    if not path.exists() or path.stat().st_mtime < tar.stat().st_mtime:
        with tempfile.TemporaryDirectory(prefix="caisson-disk-") as directory:
            subprocess.run(["tar", "-C", directory, "-xf", tar, "--exclude=./dev/*"], check=True)
            (pathlib.Path(directory) / "job").mkdir()
            temporary = path.with_suffix(f".{os.getpid()}")
            subprocess.run(["truncate", "-s", "1536M", temporary], check=True)
            subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^metadata_csum", "-E", "lazy_itable_init=1", "-m", "0",
                            "-d", directory, temporary], check=True)
            temporary.rename(path)
    return path


class BootedDebian12(unittest.TestCase):
    """AppArmor is active in both kernels. The parser of Debian 13 supports our profile."""

    suite = "bookworm"
    apparmor = False

    def test_PackagesWorkInABootedMachine(self) -> None:
        kit = SOURCE / "tests" / "vm"
        kernel = KERNELS[self.suite]
        subprocess.run(["bash", kit / "build.sh", ARCHITECTURE, kernel], check=True, stdout=subprocess.DEVNULL)
        with tempfile.TemporaryDirectory(prefix="caisson-boot-") as directory:
            for path in packages("caisson", "caisson-server"):
                shutil.copy(path, directory)
            if self.apparmor:
                (pathlib.Path(directory) / "apparmor").mkdir()
                script = 'source "$0/lib.sh" && cd "$1" && papt "$2" "$3" -qq download apparmor'
                subprocess.run(["bash", "-c", script, kit, f"{directory}/apparmor", self.suite, ARCHITECTURE], check=True)
            for name in ("booted.sh", "booted_user.sh"):
                shutil.copy(HERE / name, directory)
            done = subprocess.run(["bash", kit / "run.sh", "-a", ARCHITECTURE, "-k", kernel, "-r", disk(self.suite), "-u", "root",
                                   "-d", directory, "-t", "1500", f"sh /job/booted.sh {USER}"],
                                  capture_output=True, text=True, check=False, timeout=1600)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("booted: passed", done.stdout)


class BootedDebian13(BootedDebian12):
    suite = "trixie"
    apparmor = True


if __name__ == "__main__":
    debian_root.main(("Archives", "BootedDebian12", "BootedDebian13") if CROSS else None)
