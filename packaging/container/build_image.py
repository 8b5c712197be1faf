#!/usr/bin/env python3
"""build_image.py BASE.tar: writes caisson-VERSION-image-ARCHITECTURE.tar, an image of a Debian root and caisson.

The archive is an OCI layout. It also has a manifest.json, because Docker before 25 cannot load OCI layouts.
"""
import hashlib
import io
import json
import os
import pathlib
import re
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "dist"))
from packing import TIME, VERSION, Entry, compress, installed, tar, write  # noqa: E402

USER = 10001
STATE = "/var/lib/caisson"
NAME = "localhost/caisson"
# Written by mmdebstrap or a maintainer script, and different each time. Engines create the last three themselves.
LEFT_OUT = re.compile(r"(var/log/.+|var/cache/(apt|ldconfig)/.+|var/lib/apt/lists/.+|dev/.+|proc/.+|sys/.+|run/.+|tmp/.+"
                      r"|etc/(machine-id|hostname|resolv\.conf))")
# Replaces the package sources of the build machine.
SOURCES = b"# Add a Debian mirror here to install packages.\n"
SOURCES_LIST = "etc/apt/sources.list"
ACCOUNTS = {"etc/passwd": f"caisson:x:{USER}:{USER}::/home/caisson:/bin/bash\n",
            "etc/group": f"caisson:x:{USER}:\n", "etc/shadow": "caisson:!:::::::\n", "etc/gshadow": "caisson:!::\n"}


def base_layer(path: pathlib.Path) -> tuple[bytes, dict[str, tuple[tarfile.TarInfo, bytes]]]:
    """Returns the Debian root without the files that differ between builds, and its account files."""
    accounts, members = {}, []
    buffer = io.BytesIO()
    with tarfile.open(path) as source, tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for member in source:
            member.name = member.name.removeprefix("./").rstrip("/")
            if member.name in ("", ".") or LEFT_OUT.fullmatch(member.name):
                continue
            members.append((member, source.extractfile(member).read() if member.isreg() else b""))
        for member, data in sorted(members, key=lambda pair: (pair[0].islnk(), pair[0].name)):  # hard links after their targets
            if member.islnk():
                member.linkname = member.linkname.removeprefix("./")
            if member.name == SOURCES_LIST:
                data, member.size = SOURCES, len(SOURCES)
            if member.name in ACCOUNTS:
                accounts[member.name] = (member, data)
            member.mtime, member.uname, member.gname, member.pax_headers = min(int(member.mtime), TIME), "", "", {}
            layer.addfile(member, io.BytesIO(data) if member.isreg() else None)
    missing = {SOURCES_LIST, *ACCOUNTS} - {member.name for member, _ in members}
    if missing:
        raise SystemExit(f"{path}: missing in this root: {', '.join(sorted(missing))}")
    return buffer.getvalue(), accounts


def caisson_layer(accounts: dict[str, tuple[tarfile.TarInfo, bytes]]) -> bytes:
    entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}

    def add(name: str, kind: bytes, mode: int, owner: int = 0, data: bytes = b"") -> None:
        info = tarfile.TarInfo(name)
        info.type, info.mode, info.uid, info.gid, info.size, info.mtime = kind, mode, owner, owner, len(data), TIME
        entries[name] = (info, data)

    for file in installed():
        path = pathlib.PurePosixPath("usr", file.name)
        for parent in path.parents:
            # This does not change the mode of directories of the base: all of these are 0755 in Debian.
            if str(parent) != ".":
                add(str(parent), tarfile.DIRTYPE, 0o755)
        add(str(path), tarfile.REGTYPE, file.mode, 0, file.data)
    for name, (member, data) in accounts.items():
        data += ACCOUNTS[name].encode()
        member.size, member.mtime = len(data), TIME
        entries[name] = (member, data)
    add("home/caisson", tarfile.DIRTYPE, 0o755, USER)
    add("workspace", tarfile.DIRTYPE, 0o755, USER)
    add(STATE.lstrip("/"), tarfile.DIRTYPE, 0o700, USER)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as layer:
        for _, (info, data) in sorted(entries.items()):
            layer.addfile(info, io.BytesIO(data) if info.isreg() else None)
    return buffer.getvalue()


class Layout:
    def __init__(self) -> None:
        self.files: list[Entry] = [Entry("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')]

    def blob(self, data: bytes, media_type: str) -> dict:
        digest = hashlib.sha256(data).hexdigest()
        self.files.append(Entry(f"blobs/sha256/{digest}", data))
        return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": len(data)}

    def json_blob(self, value: dict, media_type: str) -> dict:
        return self.blob(json.dumps(value, sort_keys=True).encode(), media_type)

    def add(self, name: str, value: object) -> None:
        self.files.append(Entry(name, json.dumps(value, sort_keys=True).encode()))


def configuration(layers: list[bytes], created: str) -> dict:
    labels = {"title": "caisson", "description": "Runs untrusted code in a sandbox", "version": VERSION,
              "licenses": "Apache-2.0", "created": created, "base.name": "debian:bookworm"}
    return {
        "architecture": os.environ["image_arch"], "os": "linux", "created": created,
        "config": {
            "User": f"{USER}:{USER}", "WorkingDir": "/workspace", "Entrypoint": ["caisson"], "Cmd": ["doctor"],
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", f"CAISSON_HOME={STATE}"],
            "Volumes": {STATE: {}},
            "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items()},
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
        "history": [{"created": created, "created_by": "mmdebstrap --variant=minbase bookworm"},
                    {"created": created, "created_by": f"caisson {VERSION}"}],
    }


def build(base: pathlib.Path) -> bytes:
    debian, accounts = base_layer(base)
    layers = [debian, caisson_layer(accounts)]
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(TIME))
    layout = Layout()
    described = configuration(layers, created)
    config = layout.json_blob(described, "config.v1+json")
    blobs = [layout.blob(compress(layer, 6), "layer.v1.tar+gzip") for layer in layers]
    manifest = layout.json_blob({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                                 "config": config, "layers": blobs,
                                 "annotations": described["config"]["Labels"]}, "manifest.v1+json")
    layout.add("index.json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        {**manifest, "platform": {"architecture": described["architecture"], "os": "linux"},
         "annotations": {"org.opencontainers.image.ref.name": f"{NAME}:{VERSION}"}}]})

    def path(blob: dict) -> str:
        return "blobs/" + blob["digest"].replace(":", "/")

    layout.add("manifest.json", [{"Config": path(config), "RepoTags": [f"{NAME}:{VERSION}"],
                                  "Layers": [path(blob) for blob in blobs]}])
    return tar(layout.files)


if __name__ == "__main__":
    write(f"caisson-{VERSION}-image-{os.environ['image_arch']}.tar", build(pathlib.Path(sys.argv[1])))
