#!/usr/bin/env python3
"""The wheels in Debian roots without network access: pip, pipx, use, update, remove. Needs root and the built packages."""
from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pathlib
import re
import sys
import unittest
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import debian_root  # noqa: E402
from debian_root import HOME, RootTest, package, readme_example  # noqa: E402

MACHINE = os.uname().machine
FILES = f"{HOME}/files"
PROGRAMS = {"caisson", "caisson-broker", "caisson-commands", "caisson-mcp", "caisson-server"}
# pipx 1.7 first installs a new pip, from the wheel that Debian has.
LOCAL = ("--no-index", "--find-links", FILES, "--find-links", "/usr/share/python-wheels")
ENVIRONMENT = f"{HOME}/environment"
# pipx leaves a shared environment and logs, pip leaves its cache.
STATE = re.compile(rf"{HOME}/(\.cache/pip(x|)|\.local/pipx|\.local/share/pipx|\.local/state/pipx|\.local/share/caisson)(/.*)? .*"
                   rf"|{HOME}/\.(cache|local|local/share|local/share/man|local/share/man/man1|local/bin|local/state) 7[05][05]")


def wheels() -> tuple[pathlib.Path, pathlib.Path]:
    return package(f"caisson-*_{MACHINE}.whl"), package("caisson_client-*.whl")


def with_version(path: pathlib.Path, version: str) -> tuple[str, bytes]:
    """Returns name and content of the wheel as a later release."""
    old = path.name.split("-")[1]
    buffer, record = io.BytesIO(), ""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(buffer, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            info.filename = info.filename.replace(old, version)
            if info.filename.endswith("/METADATA"):
                data = data.replace(f"Version: {old}".encode(), f"Version: {version}".encode())
            if info.filename.endswith("/RECORD"):
                data = f"{record}{info.filename},,\n".encode()
            record += f"{info.filename},,\n"
            target.writestr(info, data)
    return path.name.replace(old, version), buffer.getvalue()


class Archives(unittest.TestCase):
    def test_RecordListsEveryFileWithItsDigest(self) -> None:
        for path in wheels():
            with zipfile.ZipFile(path) as wheel:
                names = wheel.namelist()
                record = next(name for name in names if name.endswith(".dist-info/RECORD"))
                self.assertEqual(names[-1], record)
                listed = {}
                for line in wheel.read(record).decode().splitlines():
                    name, digest, size = line.rsplit(",", 2)
                    listed[name] = (digest, size)
                self.assertEqual(sorted(listed), sorted(names))
                for name in names[:-1]:
                    data = wheel.read(name)
                    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual(listed[name], (f"sha256={digest}", str(len(data))), name)

    def test_TagsOfNameAndContentAgree(self) -> None:
        path = wheels()[0]
        platforms = path.stem.split("-")[-1].split(".")
        self.assertIn(f"manylinux_2_17_{MACHINE}", platforms)
        self.assertIn(f"musllinux_1_1_{MACHINE}", platforms)
        with zipfile.ZipFile(path) as wheel:
            text = wheel.read(next(name for name in wheel.namelist() if name.endswith("/WHEEL"))).decode()
            self.assertEqual(re.findall(r"^Tag: (.*)$", text, re.M), [f"py3-none-{platform}" for platform in platforms])
            self.assertTrue(any(name.endswith("/licenses/LICENSE") for name in wheel.namelist()))

    def test_ProgramsAreStatic(self) -> None:
        """Therefore the wheel may have the tag musllinux."""
        with zipfile.ZipFile(wheels()[0]) as wheel:
            programs = [name for name in wheel.namelist() if wheel.read(name)[:4] == b"\x7fELF"]
            self.assertEqual({name.rsplit("/", 1)[1] for name in programs}, PROGRAMS)
            for name in programs:
                data = wheel.read(name)
                first, size, count = (int.from_bytes(data[at:at + length], "little") for at, length in ((32, 8), (54, 2), (56, 2)))
                kinds = [int.from_bytes(data[first + size * index:][:4], "little") for index in range(count)]
                self.assertNotIn(3, kinds, f"{name} names a loader (PT_INTERP)")


class Wheel(RootTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.version = wheels()[0].name.split("-")[1]
        for path in wheels():
            cls.root.put(f"{FILES}/{path.name}", path.read_bytes())
        cls.before = cls.root.files()

    def pipx(self, *arguments: str) -> str:
        return self.root.output("pipx", *arguments)

    def left(self) -> list[str]:
        now = self.root.files()
        old = {line.split(" ")[0]: line for line in self.before - now}
        return [f"{line}, before: {old.get(line.split(' ')[0])}" for line in now - self.before if not STATE.fullmatch(line)]

    def make_environment(self) -> None:
        self.root.run("python3", "-m", "venv", ENVIRONMENT)
        self.addCleanup(self.root.run, "rm", "-rf", ENVIRONMENT)

    def test_PipInstallsProgramAndClient(self) -> None:
        self.check_no_compiler()
        self.make_environment()
        prefix = self.root.output("find", ENVIRONMENT, "-type", "f", "-not", "-name", "*.pyc")
        self.root.run(f"{ENVIRONMENT}/bin/pip", "install", *LOCAL, "caisson", "caisson-client")
        self.root.run(f"{ENVIRONMENT}/bin/pip", "check")
        program = f"{ENVIRONMENT}/bin/caisson"
        self.assertIn(self.version, self.root.output(program, "version"))
        self.check_readme(program)
        self.root.run(program, "verify")
        self.assertIn("Apache License", self.root.output(program, "version", "--licenses"))
        self.check_manifest(program, ENVIRONMENT)
        self.root.run(program, "mcp")
        done = self.root.run(program, "image", "list", check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("caisson-image", done.stdout)
        self.root.put("/tmp/example.py", readme_example("python"))
        # caisson is not in PATH, so the client finds the program in its environment. Its server exits with the root.
        self.assertEqual(self.root.output(f"{ENVIRONMENT}/bin/python", "/tmp/example.py"), "42")
        self.root.run("rm", "/tmp/example.py")
        self.root.run(f"{ENVIRONMENT}/bin/pip", "uninstall", "--yes", "caisson", "caisson-client")
        self.assertEqual(self.root.output("find", ENVIRONMENT, "-type", "f", "-not", "-name", "*.pyc"), prefix)

    def test_PipxLeavesOnlyStateAfterRemoval(self) -> None:
        self.pipx("install", f"--pip-args={' '.join(LOCAL)}", "caisson")
        self.assertIn(self.version, self.root.output("caisson", "version"))
        self.assertEqual(self.root.output("caisson", "run", "--", "id", "-un", cwd="/tmp"), "sandbox")
        self.root.run("caisson", "mcp")
        self.assertIn("caisson", self.pipx("list"))
        self.pipx("uninstall", "caisson")
        self.assertNotEqual(self.root.run("sh", "-c", "command -v caisson", check=False).returncode, 0)
        self.assertEqual(self.root.output("sh", "-c", f"find {HOME}/.local -path '*venvs/caisson*'"), "")
        self.assertEqual(self.left(), [])

    def test_PipxUpgradeKeepsPathInAgentConfiguration(self) -> None:
        self.pipx("install", f"--pip-args={' '.join(LOCAL)}", "caisson")
        self.addCleanup(self.pipx, "uninstall", "caisson")
        self.addCleanup(self.root.run, "rm", "-rf", f"{HOME}/.cursor")
        self.root.run("caisson", "mcp", "install", "cursor", "--scope=user", "--yes")
        entry = json.loads(self.root.output("cat", f"{HOME}/.cursor/mcp.json"))["mcpServers"]["caisson"]
        self.assertTrue(entry["command"].endswith("/venvs/caisson/bin/caisson"), entry)
        name, data = with_version(wheels()[0], "99.0.0")
        self.root.put(f"{FILES}/{name}", data)
        self.addCleanup(self.root.run, "rm", f"{FILES}/{name}")
        self.assertIn("99.0.0", self.pipx("upgrade", f"--pip-args={' '.join(LOCAL)}", "caisson"))
        self.root.run(entry["command"], *entry["args"])

    def test_WheelOfOtherMachineIsRefused(self) -> None:
        self.make_environment()
        path = wheels()[0]
        other = {"aarch64": "x86_64", "x86_64": "aarch64"}[MACHINE]
        name = f"{HOME}/{path.name.replace(MACHINE, other)}"
        self.root.put(name, path.read_bytes())
        self.addCleanup(self.root.run, "rm", name)
        done = self.root.run(f"{ENVIRONMENT}/bin/pip", "install", "--no-index", name, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is not a supported wheel on this platform", done.stdout)


class WheelOnDebian13(Wheel):
    suite = "trixie"


if __name__ == "__main__":
    debian_root.main()
