#!/usr/bin/env python3
"""check_versions.py: checks that CMakeLists.txt, the clients, the packages and the CHANGELOG have the same version."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def found(path, pattern):
    match = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    return match[1] if match else "missing"


def main():
    version = found("CMakeLists.txt", r"^project\(caisson VERSION (\S+)")
    versions = {
        "CHANGELOG.md": found("CHANGELOG.md", r"^## ([0-9.]+) \(\d{4}-\d\d-\d\d\)$"),
        "clients/python/pyproject.toml": found("clients/python/pyproject.toml", r'^version = "([^"]+)"'),
        "clients/typescript/package.json": json.loads((ROOT / "clients/typescript/package.json").read_text())["version"],
    }
    lock = json.loads((ROOT / "clients/typescript/package-lock.json").read_text())
    versions["clients/typescript/package-lock.json"] = lock["version"]
    versions["clients/typescript/package-lock.json (packages)"] = lock["packages"][""]["version"]
    wrong = {path: other for path, other in versions.items() if other != version}
    for path, other in wrong.items():
        print(f"{path}: version {other}, but CMakeLists.txt has {version}")
    if not wrong:
        print(f"versions: {version} everywhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
