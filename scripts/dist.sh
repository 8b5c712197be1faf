#!/bin/sh
# dist.sh [ARTEFACT...]: builds the packages of this machine's architecture into dist/. The artefacts are tarball, deb,
# npm, wheel and image; all of them unless some are named. The same commit gives the same bytes in any directory.
set -eu
. "$(dirname -- "$0")/lib.sh"
. "$root/packaging/dist/lib.sh"

if [ $# = 0 ]; then
  for artefact in tarball deb npm wheel image; do
    if [ -f "$root/packaging/dist/$artefact.sh" ]; then set -- "$@" "$artefact"; fi
  done
fi
for artefact in "$@"; do
  [ -f "$root/packaging/dist/$artefact.sh" ] || die "unknown artefact \"$artefact\": expected tarball, deb, npm, wheel or image"
done

sh "$root/scripts/build.sh" dist caisson caisson-mcp caisson-server caisson-broker caisson-image caisson-unpack caisson_library
mkdir -p "$work" "$output"
rm -rf "$stage"
DESTDIR=$stage cmake --install "$build" --prefix /usr --strip >"$build/install.log" ||
  die "cmake --install failed (log: $build/install.log)"
set_times "$stage"

for artefact in "$@"; do
  say "packing $artefact"
  sh "$root/packaging/dist/$artefact.sh"
done
say "packages are in $output"
