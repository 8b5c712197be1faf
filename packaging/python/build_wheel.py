#!/usr/bin/env python3
"""Writes the wheel `caisson`: all programs, for any Python 3 on this machine's architecture.

pip installs the files of `data` in the prefix of the environment, so that bin/caisson finds ../libexec/caisson.
"""
import base64
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "dist"))
from packing import MACHINE, VERSION, Entry, installed, write, zip_archive  # noqa: E402

# The programs are static, so they work with any C library. pip requires a version of it in the tag.
PLATFORMS = (f"manylinux_2_17_{MACHINE}", f"manylinux2014_{MACHINE}", f"musllinux_1_1_{MACHINE}")
STEM = f"caisson-{VERSION}"
INFORMATION = f"{STEM}.dist-info"


def metadata() -> bytes:
    return (f"Metadata-Version: 2.1\nName: caisson\nVersion: {VERSION}\n"
            "Summary: Runs untrusted code in a sandbox on Linux\nLicense: Apache-2.0\n"
            "Classifier: Operating System :: POSIX :: Linux\nRequires-Python: >=3.7\n"
            f"Description-Content-Type: text/markdown\n\n{(HERE / 'README.md').read_text()}").encode()


def wheel_file() -> bytes:
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in PLATFORMS)
    return f"Wheel-Version: 1.0\nGenerator: caisson\nRoot-Is-Purelib: false\n{tags}".encode()


def content() -> list[Entry]:
    files = installed()
    placed = [Entry(f"{STEM}.data/" + ("scripts/caisson" if file.name == "bin/caisson" else f"data/{file.name}"), file.data,
                    file.executable) for file in files]
    documents = "share/doc/caisson/"
    licenses = [Entry(f"{INFORMATION}/licenses/{file.name.removeprefix(documents)}", file.data) for file in files
                if file.name.startswith(documents)]
    return [*placed, *licenses, Entry(f"{INFORMATION}/METADATA", metadata()), Entry(f"{INFORMATION}/WHEEL", wheel_file())]


def record(files: list[Entry]) -> Entry:
    lines = ""
    for file in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.data).digest()).rstrip(b"=").decode()
        lines += f"{file.name},sha256={digest},{len(file.data)}\n"
    return Entry(f"{INFORMATION}/RECORD", f"{lines}{INFORMATION}/RECORD,,\n".encode())


def main() -> None:
    files = content()
    write(f"{STEM}-py3-none-{'.'.join(PLATFORMS)}.whl", zip_archive([*files, record(files)]))


if __name__ == "__main__":
    main()
