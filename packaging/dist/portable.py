#!/usr/bin/env python3
"""portable.py STAGE DIRECTORY: copies the files of the npm package, the wheel and the image from an installed tree.

These packages run on every Linux, so programs that need shared libraries (caisson-image) are left out. Headers, the
library, documentation and completions are left out too.
"""
import pathlib
import shutil
import sys

from packing import is_static

DOCUMENTS = ("LICENSE", "NOTICE")
LEFT_OUT = ("MANIFEST", "MANIFEST.sig")  # of the whole tree


def main() -> None:
    stage, target = map(pathlib.Path, sys.argv[1:])
    files = [stage / "bin" / "caisson", stage / "share" / "man" / "man1" / "caisson.1",
             *(stage / "share" / "doc" / "caisson" / name for name in DOCUMENTS),
             *(path for path in (stage / "share" / "caisson").rglob("*") if path.is_file() and path.name not in LEFT_OUT),
             *(path for path in (stage / "libexec" / "caisson").iterdir() if is_static(path.read_bytes()))]
    for path in files:
        copy = target / path.relative_to(stage)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


if __name__ == "__main__":
    main()
