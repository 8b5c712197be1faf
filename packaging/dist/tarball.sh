#!/bin/sh
# tarball.sh: builds dist/caisson-VERSION-linux-MACHINE.tar.gz (bin, libexec, lib, include, share), to unpack anywhere.
# Called by scripts/dist.sh.
set -eu
. "$(dirname -- "$0")/lib.sh"

name=caisson-$version-linux-$machine
folder=$(scratch tarball)
cp -a "$stage/usr" "$folder/$name"
make_tarball "$output/$name.tar.gz" "$folder" "$name"
rm -rf "$folder"
