#!/usr/bin/env python3
"""oci_layout.py OUT CONFIG LAYER...: writes an OCI image layout. CONFIG is the JSON object "config" of the image. Each
LAYER is a directory, in which names that begin with .wh. are whiteouts."""
import hashlib
import io
import json
import pathlib
import platform
import sys
import tarfile


def main():
    out, config, layers = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]
    blobs = out / "blobs/sha256"
    blobs.mkdir(parents=True)

    def put(data):
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": "sha256:" + digest, "size": len(data)}

    def put_json(value):
        return put(json.dumps(value).encode())

    described = []
    for layer in layers:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            archive.add(layer, arcname=".")
        described.append({"mediaType": "application/vnd.oci.image.layer.v1.tar", **put(stream.getvalue())})
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    image = put_json({"architecture": architecture, "os": "linux", "config": config,
                      "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in described]}})
    manifest = put_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                         "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **image},
                         "layers": described})
    (out / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (out / "index.json").write_text(json.dumps({
        "schemaVersion": 2, "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json", **manifest}]}))


main()
