#!/usr/bin/env python3
"""The npm packages in Debian roots without network access: install, use, update, remove. Needs root and the packages."""
from __future__ import annotations

import io
import json
import os
import pathlib
import re
import sys
import tarfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import debian_root  # noqa: E402
from debian_root import HOME, RootTest, package, readme_example  # noqa: E402

ARCHITECTURE = {"aarch64": "arm64", "x86_64": "x64"}[os.uname().machine]
PLATFORM = f"caisson-linux-{ARCHITECTURE}"
PROJECT = f"{HOME}/project"
FILES = f"{HOME}/files"
OFFLINE = ("--offline", "--no-audit", "--no-fund")
STATE = re.compile(rf"{HOME}/(\.npm|\.local/share/caisson)(/.*)? .*|{HOME}/\.local(/share)? 7[05][05]")


def packages() -> dict[str, bytes]:
    """Returns a map from package name to archive."""
    return {name: package(f"{name}-[0-9]*.tgz").read_bytes() for name in ("caisson", PLATFORM, "caisson-client")}


def content(archive: bytes) -> dict[str, tuple[int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: (member.mode, tar.extractfile(member).read()) for member in tar}


def description(archive: bytes) -> dict:
    return json.loads(content(archive)["package/package.json"][1])


def with_version(archive: bytes, version: str) -> bytes:
    """Returns the package as a later release."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, (mode, data) in content(archive).items():
            if name == "package/package.json":
                data = data.replace(description(archive)["version"].encode(), version.encode())
            info = tarfile.TarInfo(name)
            info.mode, info.size = mode, len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


class Archives(debian_root.unittest.TestCase):
    def test_PackagesHaveNoInstallScriptsAndOneVersion(self) -> None:
        described = {name: description(archive) for name, archive in packages().items()}
        self.assertEqual(len({value["version"] for value in described.values()}), 1)
        for value in described.values():
            self.assertNotIn("scripts", value)
            self.assertNotIn("dependencies", value)
        version = described["caisson"]["version"]
        self.assertEqual(described["caisson"]["optionalDependencies"], {"caisson-linux-arm64": version, "caisson-linux-x64": version})
        self.assertEqual((described[PLATFORM]["os"], described[PLATFORM]["cpu"]), (["linux"], [ARCHITECTURE]))

    def test_PackagesHaveFixedModesAndLicenses(self) -> None:
        for name, archive in packages().items():
            files = content(archive)
            self.assertIn("package/LICENSE", files)
            self.assertLessEqual({mode for mode, _ in files.values()}, {0o644, 0o755})
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                members = tar.getmembers()
            self.assertEqual({(member.uid, member.gid, member.uname) for member in members}, {(0, 0, "")}, name)
            self.assertEqual([member.name for member in members], sorted(files), name)
        self.assertIn("package/dist/index.d.ts", content(packages()["caisson-client"]))


class Npm(RootTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.archives = packages()
        cls.version = description(cls.archives["caisson"])["version"]
        for name, data in cls.archives.items():
            cls.root.put(f"{FILES}/{name}.tgz", data)
        cls.before = cls.root.files()

    def npm(self, *arguments: str, cwd: str = PROJECT, **options) -> str:
        return self.root.output("npm", *arguments, cwd=cwd, **options)

    def install(self, *names: str, flags: tuple[str, ...] = ()) -> None:
        self.root.run("mkdir", "-p", PROJECT)
        self.npm("install", *OFFLINE, *flags, *(f"{FILES}/{name}.tgz" for name in names))

    def remove_project(self) -> None:
        self.root.run("rm", "-rf", PROJECT)

    def test_ProjectInstallRunsProgramAndClient(self) -> None:
        self.addCleanup(self.remove_project)
        self.check_no_compiler()
        self.install("caisson", PLATFORM, "caisson-client")
        self.assertIn(self.version, self.root.output("npx", "--offline", "--no", "caisson", "version", cwd=PROJECT))
        program = f"{PROJECT}/node_modules/.bin/caisson"
        self.assertEqual(self.root.output(program, "run", "--", "id", "-u", cwd=PROJECT), "1000")
        self.assertEqual(self.root.run(program, "run", "--", "sh", "-c", "exit 7", cwd=PROJECT, check=False).returncode, 7)
        self.check_readme(program)
        self.root.run(program, "verify")
        self.assertIn("Apache License", self.root.output(program, "version", "--licenses"))
        self.check_manifest(program, f"{PROJECT}/node_modules/{PLATFORM}")
        self.root.put(f"{PROJECT}/example.mjs", readme_example("ts"))
        # caisson is not in PATH, so the client finds the package in node_modules. Its server exits with the root.
        self.assertEqual(self.root.output("node", "example.mjs", cwd=PROJECT), "42")
        self.npm("uninstall", *OFFLINE, "caisson", PLATFORM, "caisson-client")
        left = self.root.output("find", ".", "-path", "./node_modules/*", "!", "-name", ".package-lock.json", "!", "-type", "d",
                                cwd=PROJECT)
        self.assertEqual(left, "")

    def test_GlobalInstallLeavesOnlyStateAfterRemoval(self) -> None:
        self.npm("install", "--global", f"--prefix={HOME}/.local", *OFFLINE, f"{FILES}/caisson.tgz", f"{FILES}/{PLATFORM}.tgz", cwd=HOME)
        self.assertIn(self.version, self.root.output("caisson", "version"))
        self.assertEqual(self.root.output("caisson", "run", "--", "id", "-un", cwd="/tmp"), "sandbox")
        self.assertIn("caisson-broker", self.root.output("ls", f"{HOME}/.local/lib/node_modules/{PLATFORM}/libexec/caisson"))
        self.root.run("test", "-s", f"{HOME}/.local/share/man/man1/caisson.1")
        self.npm("uninstall", "--global", f"--prefix={HOME}/.local", "caisson", PLATFORM, cwd=HOME)
        self.root.run("find", f"{HOME}/.local", "-depth", "-type", "d", "-empty", "-delete")
        left = [line for line in self.root.files() - self.before if not STATE.fullmatch(line)]
        self.assertEqual(left, [])

    def test_LauncherExecsTheProgram(self) -> None:
        """The launcher executes the program, so that the program has the launcher's process id and receives signals."""
        self.addCleanup(self.remove_project)
        self.install("caisson", PLATFORM)
        script = ('node_modules/.bin/caisson run -- sleep 60 & pid=$!; '
                  'until [ "$(readlink /proc/$pid/exe)" = "$PWD/node_modules/$0/bin/caisson" ]; do kill -0 $pid || exit 1; done; '
                  'kill $pid; wait $pid; echo "status $?"')
        self.assertIn("status 143", self.root.output("timeout", "30", "bash", "-c", script, PLATFORM, cwd=PROJECT))

    def test_AgentConfigurationNamesProgramThatSurvivesUpdate(self) -> None:
        self.addCleanup(self.remove_project)
        self.install("caisson", PLATFORM)
        self.addCleanup(self.root.run, "rm", "-rf", f"{HOME}/.cursor", f"{HOME}/.codex")
        shim = f"{PROJECT}/node_modules/.bin/caisson"
        self.root.run(shim, "mcp", "install", "cursor", "--scope=user", "--yes")
        entry = json.loads(self.root.output("cat", f"{HOME}/.cursor/mcp.json"))["mcpServers"]["caisson"]
        program = f"{PROJECT}/node_modules/{PLATFORM}/bin/caisson"
        self.assertEqual(entry["command"], program)
        self.root.run(shim, "agent", "install", "codex", "--yes")
        self.assertIn(program, self.root.output("sh", "-c", f"cat {HOME}/.codex/*"))
        for name in ("caisson", PLATFORM):
            self.root.put(f"{FILES}/new-{name}.tgz", with_version(self.archives[name], "99.0.0"))
            self.addCleanup(self.root.run, "rm", f"{FILES}/new-{name}.tgz")
        self.install("new-caisson", f"new-{PLATFORM}")
        self.assertIn("99.0.0", self.root.output("cat", f"node_modules/{PLATFORM}/package.json", cwd=PROJECT))
        self.root.run(entry["command"], *entry["args"])

    def test_AgentConfigurationDoesNotNameTheCacheOfNpx(self) -> None:
        npx = ("npx", "--offline", "--yes", f"--package={FILES}/caisson.tgz", f"--package={FILES}/{PLATFORM}.tgz", "caisson")
        self.assertIn(self.version, self.root.output(*npx, "version"))
        for verb in (("mcp", "install", "cursor", "--scope=user"), ("agent", "install", "codex")):
            done = self.root.run(*npx, *verb, "--yes", check=False)
            self.assertEqual(done.returncode, 125, done.stdout)
            self.assertIn("npm install --global", done.stdout)
        self.assertEqual(self.root.output("sh", "-c", f"ls -d {HOME}/.cursor {HOME}/.codex 2>/dev/null || :"), "")

    def test_MissingPlatformPackageIsExplained(self) -> None:
        self.addCleanup(self.remove_project)
        self.install("caisson", flags=("--omit=optional",))
        done = self.root.run("node_modules/.bin/caisson", "version", cwd=PROJECT, check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"the package {PLATFORM} is not installed", done.stdout)
        self.assertIn("without --omit=optional", done.stdout)

    def test_OtherMachineIsExplained(self) -> None:
        self.addCleanup(self.remove_project)
        self.install("caisson", PLATFORM)
        for machine in ("Linux riscv64", "Darwin arm64"):
            self.root.put(f"{PROJECT}/bin/uname", f"#!/bin/sh\necho {machine}\n")
            self.root.run("chmod", "755", f"{PROJECT}/bin/uname")
            done = self.root.run("node_modules/.bin/caisson", "version", cwd=PROJECT, check=False,
                                 environment={"PATH": f"{PROJECT}/bin:/usr/bin:/bin"})
            self.assertEqual(done.returncode, 125)
            self.assertIn(f"no program for {machine}", done.stdout)
            self.assertIn("x86_64 and aarch64", done.stdout)

    def test_PackageOfOtherMachineIsNotInstalled(self) -> None:
        other = {"arm64": "x64", "x64": "arm64"}[ARCHITECTURE]
        self.addCleanup(self.remove_project)
        renamed = self.archives[PLATFORM]
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            data = content(renamed)["package/package.json"][1].replace(ARCHITECTURE.encode(), other.encode())
            info = tarfile.TarInfo("package/package.json")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        self.root.put(f"{FILES}/other.tgz", buffer.getvalue())
        self.addCleanup(self.root.run, "rm", f"{FILES}/other.tgz")
        self.root.run("mkdir", "-p", PROJECT)
        done = self.root.run("npm", "install", *OFFLINE, f"{FILES}/other.tgz", cwd=PROJECT, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("EBADPLATFORM", done.stdout)


class NpmOnDebian13(Npm):
    suite = "trixie"


if __name__ == "__main__":
    debian_root.main()
