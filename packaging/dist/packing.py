"""Writes reproducible archives: sorted names, owner 0, the time of the commit, fixed modes.

The values come from the environment that packaging/dist/lib.sh and portable.sh export.
"""
from __future__ import annotations

import gzip
import io
import os
import pathlib
import tarfile
import time
import zipfile
from dataclasses import dataclass

VERSION = os.environ["version"]
MACHINE = os.environ["machine"]
TIME = int(os.environ["SOURCE_DATE_EPOCH"])
PORTABLE = pathlib.Path(os.environ["portable"])
OUTPUT = pathlib.Path(os.environ["output"])
ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Entry:
    name: str
    data: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


def entry(name: str, path: pathlib.Path) -> Entry:
    return Entry(name, path.read_bytes(), os.access(path, os.X_OK))


def files_below(directory: pathlib.Path, prefix: str = "") -> list[Entry]:
    """Returns the files below a directory, with relative names."""
    return [entry(prefix + path.relative_to(directory).as_posix(), path)
            for path in sorted(directory.rglob("*")) if path.is_file() and not path.is_symlink()]


def is_static(program: bytes) -> bool:
    """Returns whether a 64-bit ELF program has no PT_INTERP, so that it runs without shared libraries."""
    table, size, count = (int.from_bytes(program[at:at + length], "little") for at, length in ((32, 8), (54, 2), (56, 2)))
    return all(program[table + size * index:][:4] != b"\3\0\0\0" for index in range(count))


def installed() -> list[Entry]:
    """Returns the files of the packages that run on every Linux (packaging/dist/portable.sh)."""
    return files_below(PORTABLE)


def tar(entries: list[Entry]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(entries, key=lambda file: file.name):
            info = tarfile.TarInfo(file.name)
            info.size, info.mode, info.mtime = len(file.data), file.mode, TIME
            archive.addfile(info, io.BytesIO(file.data))
    return buffer.getvalue()


def compress(data: bytes, level: int = 9) -> bytes:
    return gzip.compress(data, level, mtime=0)


def zip_archive(entries: list[Entry]) -> bytes:
    """Keeps the given order: in a wheel, RECORD comes last."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for file in entries:
            info = zipfile.ZipInfo(file.name, time.gmtime(TIME)[:6])
            info.external_attr = (0o100000 | file.mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.data, compresslevel=9)
    return buffer.getvalue()


def write(name: str, data: bytes) -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    (OUTPUT / name).write_bytes(data)
