"""Build backend (PEP 517) for this package. It needs only the standard library, so a wheel can be built offline.

    python3 tools/build_wheel.py DIRECTORY      builds the wheel without pip
"""
from __future__ import annotations

import base64
import hashlib
import io
import pathlib
import re
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "caisson_client"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same files give the same wheel


def _project(key: str) -> str:
    found = re.search(rf'^{key} = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit(f"pyproject.toml: no {key}")
    return found[1]


def _metadata() -> str:
    return (f"Metadata-Version: 2.1\nName: {_project('name')}\nVersion: {_project('version')}\n"
            f"Summary: {_project('description')}\nRequires-Python: {_project('requires-python')}\n"
            f"Description-Content-Type: text/markdown\n\n{(ROOT / 'README.md').read_text()}")


def _sources() -> list[pathlib.Path]:
    return sorted(path for path in (ROOT / "src" / PACKAGE).rglob("*") if path.suffix == ".py" or path.name == "py.typed")


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    del config_settings, metadata_directory
    stem = f"{PACKAGE}-{_project('version')}"
    files = {path.relative_to(ROOT / "src").as_posix(): path.read_bytes() for path in _sources()}
    files[f"{stem}.dist-info/METADATA"] = _metadata().encode()
    files[f"{stem}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: caisson\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files[f"{stem}.dist-info/RECORD"] = f"{record}{stem}.dist-info/RECORD,,\n".encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    del config_settings
    stem = f"{PACKAGE}-{_project('version')}"
    paths = [*_sources(), ROOT / "pyproject.toml", ROOT / "README.md", *sorted((ROOT / "tools").glob("*.py"))]
    with tarfile.open(pathlib.Path(sdist_directory) / f"{stem}.tar.gz", "w:gz") as archive:
        for path in paths:
            archive.add(path, f"{stem}/{path.relative_to(ROOT).as_posix()}")
        data = _metadata().encode()
        entry = tarfile.TarInfo(f"{stem}/PKG-INFO")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return f"{stem}.tar.gz"


if __name__ == "__main__":
    print(build_wheel(sys.argv[1] if len(sys.argv) > 1 else "."))
