#!/usr/bin/env python3
"""make.py BUILD-DIRECTORY ARCHITECTURE OUTPUT.pyz: packs the built programs and suites with the files that they read.

The output is one file for `python3 OUTPUT.pyz`, which needs nothing else (run.py is its main program). STRIP is the
program that removes symbols. Fails if the file is larger than 45 MB.
"""
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MAX_BYTES = 45_000_000
# The programs contain the same libraries, so what a dictionary of the usual 8 MiB has forgotten comes again.
COMPRESSION = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 128 << 20}]
ROOT = "@ROOT@"  # where the bundle is unpacked


def is_program(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        head = file.read(18)
    return head[:4] == b"\x7fELF" and head[16] in (2, 3) and os.access(path, os.X_OK)


def programs(build):
    for directory, names, files in os.walk(build):
        names[:] = [name for name in names if name not in ("CMakeFiles", "test-results", "mcp-suite")]
        for name in files:
            path = pathlib.Path(directory) / name
            if is_program(path):
                yield path


def listed_tests(build):
    """The tests as ctest knows them, with those that root also runs as an ordinary user: only ctest knows the user, so it
    runs as root of a user namespace."""
    command = ["ctest", "--test-dir", build, "--show-only=json-v1"]
    if os.geteuid() != 0:
        command = ["unshare", "--user", "--map-root-user", *command]
    tests = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["tests"]
    for test in tests:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        words = test.get("command", [])
        if words and "qemu-" in words[0]:  # ctest starts programs of another architecture with an emulator
            words = words[next(at for at, word in enumerate(words) if word.startswith(str(build))):]
        yield {
            "name": test["name"],
            "command": words,
            "timeout": properties.get("TIMEOUT", 300),
            "cost": properties.get("COST", 0),
            "processors": properties.get("PROCESSORS", 1),
            "serial": bool(properties.get("RUN_SERIAL")),
            "labels": properties.get("LABELS", []),
            "skip_code": properties.get("SKIP_RETURN_CODE"),
            "environment": properties.get("ENVIRONMENT", []),
        }


def movable(value, build):
    """Replaces the paths of this machine."""
    text = json.dumps(value)
    text = re.sub(re.escape(str(build)) + r"(?![\w-])", ROOT + "/build", text)
    return json.loads(re.sub(re.escape(str(SOURCE)) + r"(?![\w-])", ROOT, text))


def stage(build, into):
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=SOURCE, check=True, capture_output=True, text=True).stdout
    for name in tracked.split("\0"):
        path = SOURCE / name
        if not name or not path.is_file():
            continue
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, into / name)
    for path in programs(build):
        copy = into / "build" / path.relative_to(build)
        copy.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([os.environ.get("STRIP", "strip"), "-o", copy, path], check=True)


def main():
    build, architecture, output = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3])
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory) / "root"
        root.mkdir()
        stage(build, root)
        (root / "bundle.json").write_text(json.dumps(
            {"architecture": architecture, "tests": movable(list(listed_tests(build)), build)}, indent=1))
        archive = pathlib.Path(directory) / "files.tar.xz"
        with lzma.open(archive, "wb", filters=COMPRESSION) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(root, arcname=".")
        with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as whole:
            whole.write(SOURCE / "tests/bundle/run.py", "__main__.py")
            whole.write(archive, "files.tar.xz")
    size = output.stat().st_size
    print(f"{output}: {size / 1e6:.1f} MB")
    if size > MAX_BYTES:
        output.unlink()
        sys.exit(f"the bundle is larger than {MAX_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
