#!/usr/bin/env python3
"""pack.py CLIENT: writes the npm packages of this machine's architecture. CLIENT is clients/typescript with its dist/.

Does not use `npm pack`, because its output depends on the version of npm.
"""
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "dist"))
from packing import PORTABLE, ROOT, VERSION, Entry, compress, entry, files_below, installed, tar, write  # noqa: E402

ARCHITECTURES = ("arm64", "x64")
COMMON = {"version": VERSION, "license": "Apache-2.0"}


def package(description: dict, files: list[Entry]) -> None:
    files = [*files, Entry("package.json", (json.dumps(description, indent=2) + "\n").encode())]
    data = compress(tar([Entry("package/" + file.name, file.data, file.executable) for file in files]))
    write(f"{description['name']}-{VERSION}.tgz", data)


def main_package() -> None:
    package({"name": "caisson", **COMMON, "description": "Runs untrusted code in a sandbox on Linux",
             "bin": {"caisson": "bin/caisson"}, "man": ["man/caisson.1"],
             "optionalDependencies": {f"caisson-linux-{name}": VERSION for name in ARCHITECTURES}},
            [*files_below(HERE / "caisson"), entry("man/caisson.1", PORTABLE / "share" / "man" / "man1" / "caisson.1"),
             entry("LICENSE", ROOT / "LICENSE")])


def platform_package(architecture: str) -> None:
    text = f"The program of the package `caisson` for Linux on {architecture}. Install `caisson`, which uses it.\n"
    package({"name": f"caisson-linux-{architecture}", **COMMON, "description": text.strip(), "os": ["linux"],
             "cpu": [architecture], "preferUnplugged": True},
            [*installed(), entry("LICENSE", ROOT / "LICENSE"), Entry("README.md", text.encode())])


def client_package(client: pathlib.Path) -> None:
    described = json.loads((client / "package.json").read_text())
    if described["version"] != VERSION:
        raise SystemExit(f"clients/typescript/package.json has version {described['version']}, CMakeLists.txt {VERSION}")
    kept = {key: value for key, value in described.items() if key not in ("scripts", "devDependencies")}
    package({**kept, **COMMON}, [*files_below(client / "dist", "dist/"), entry("README.md", client / "README.md"),
                                 entry("LICENSE", ROOT / "LICENSE")])


def main() -> None:
    main_package()
    platform_package(os.environ["npm_arch"])
    client_package(pathlib.Path(sys.argv[1]))


if __name__ == "__main__":
    main()
