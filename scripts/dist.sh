#!/bin/sh
# dist.sh [ARTEFACT...]: builds the packages of this machine's architecture into dist/. The artefacts are tarball, deb,
# npm, wheel and image; all of them unless some are named. The same commit gives the same bytes in any directory.
set -eu
. "$(dirname -- "$0")/lib.sh"
. "$root/packaging/dist/lib.sh"

if [ $# = 0 ]; then
  rm -rf "$output" # nothing of an earlier version stays beside the new packages
  for artefact in tarball deb npm wheel image; do
    if [ -f "$root/packaging/dist/$artefact.sh" ]; then set -- "$@" "$artefact"; fi
  done
fi
for artefact in "$@"; do
  [ -f "$root/packaging/dist/$artefact.sh" ] || die "unknown artefact \"$artefact\": expected tarball, deb, npm, wheel or image"
done

sh "$root/scripts/install_dependencies.sh" dist
sh "$root/scripts/build.sh" dist caisson caisson-mcp caisson-server caisson-broker caisson-image caisson-unpack caisson_library
mkdir -p "$work" "$output"
rm -rf "$stage"
DESTDIR=$stage cmake --install "$build" --prefix /usr --strip >"$build/install.log" ||
  die "cmake --install failed (log: $build/install.log)"
python3 -B "$root/packaging/dist/sbom.py" "$build" "$stage/usr" "$version" "$(sh "$root/packaging/dist/commit.sh" id)" \
  "$SOURCE_DATE_EPOCH" "$stage/usr/share/caisson/sbom.spdx.json"
make_manifest "$stage/usr" MANIFEST
set_times "$stage"

for artefact in "$@"; do
  say "packing $artefact"
  sh "$root/packaging/dist/$artefact.sh"
done

cp "$stage/usr/share/caisson/sbom.spdx.json" "$output/caisson-$version-linux-$machine.spdx.json"
sh "$root/packaging/dist/sign.sh" --public "$output/caisson-signing.pub"
rm -f "$output/SHA256SUMS" "$output/SHA256SUMS.sig"
(cd "$output" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$output/SHA256SUMS"
sh "$root/packaging/dist/sign.sh" "$output/SHA256SUMS"
say "packages are in $output"
