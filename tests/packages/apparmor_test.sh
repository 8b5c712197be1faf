#!/bin/bash
# apparmor_test.sh: tests caisson on hosts that restrict user namespaces, in an emulated machine with AppArmor 4 of Debian
# 13 and the kernel of its backports. Installs the packages of dist/ if they are built, otherwise the programs of build/.
# The checks are in apparmor_inside.py.
# CONFORMS("R-LEVEL-15", "R-USE-4", "R-USE-5");
set -euo pipefail
source "$(dirname "$0")/../vm/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
arch=$(dpkg --print-architecture)
output=${CAISSON_DIST_OUTPUT:-$source_root/dist}
work=$(mktemp -d "${TMPDIR:-/tmp}/caisson-apparmor.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/job/root" "$work/job/control" "$work/job/libraries"

if compgen -G "$output/caisson_*_$arch.deb" >/dev/null; then
  for package in caisson caisson-server; do
    file=$(ls -t "$output/${package}"_*_"$arch.deb" | head -1)
    log "installing ${file##*/}"
    dpkg-deb -x "$file" "$work/job/root"
    if [ $package = caisson ]; then dpkg-deb -e "$file" "$work/job/control"; fi
  done
else
  log "installing build/: there are no packages in dist/"
  install -D -s -t "$work/job/root/usr/bin" "$source_root/build/caisson"
  install -D -s -t "$work/job/root/usr/libexec/caisson" "$source_root"/build/caisson-{mcp,server,image,unpack,broker}
fi
rm -rf "$work/job/root"/usr/share/doc
# Libraries that the machine lacks, for the dynamically linked caisson-image.
for program in "$work/job/root"/usr/libexec/caisson/*; do
  (ldd "$program" 2>/dev/null || :) | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done | sort -u | xargs -r cp -Lt "$work/job/libraries"

# Debian 13's parser with the C library of Debian 13, because the machine has Debian 12.
fetch_closure trixie "$arch" "$CACHE/debs-apparmor-$arch" apparmor
for package in "$CACHE/debs-apparmor-$arch"/{apparmor,libc6}_*.deb; do dpkg-deb -x "$package" "$work/tools"; done
mkdir -p "$work/job/parser" "$work/job/root/etc" "$work/job/root/usr/share"
cp -a "$work/tools/etc/apparmor" "$work/tools/etc/apparmor.d" "$work/job/root/etc/"
cp -a "$work/tools/usr/share/apparmor-features" "$work/job/root/usr/share/" # named in its configuration
cp -L "$work/tools/usr/sbin/apparmor_parser" "$work/tools/usr/lib"/*/{ld-linux-*.so.[12],libc.so.6} "$work/job/parser/"
cp "$source_root/packaging/apparmor/caisson" "$work/job/profile"
cp "$source_root/tests/packages/apparmor_inside.py" "$work/job/"

bash "$VM_SOURCE/build.sh" "$arch" bpo
bash "$VM_SOURCE/run.sh" -a "$arch" -k bpo -u root -A "apparmor=1 lsm=landlock,lockdown,yama,apparmor" -d "$work/job" \
  -t "${CAISSON_VM_SECONDS:-1500}" "python3 /job/apparmor_inside.py $*"
