#!/bin/sh
# dist.sh [--arch ARCHITECTURE] [ARTEFACT...]: builds packages into dist/. The artefacts are tarball, deb, npm, wheel and
# image; the default is all. The build is reproducible: the same commit gives the same bytes in any directory.
# --arch: build for amd64 or arm64. Packages for another architecture are added to those of this machine.
set -eu
. "$(dirname -- "$0")/lib.sh"
if [ "${1:-}" = --arch ]; then
  arch=$2
  shift 2
  sh "$root/scripts/install_dependencies.sh" build image dist
  run_for "$arch" sh "$0" "$@"
fi
. "$root/packaging/dist/lib.sh"

if [ $# = 0 ]; then
  # Remove packages of earlier versions.
  if [ -z "${CAISSON_CROSS:-}" ]; then rm -rf "$output"; fi
  for artefact in tarball deb npm wheel image; do
    if [ -f "$root/packaging/dist/$artefact.sh" ]; then set -- "$@" "$artefact"; fi
  done
fi
for artefact in "$@"; do
  [ -f "$root/packaging/dist/$artefact.sh" ] || die "unknown artefact \"$artefact\": expected tarball, deb, npm, wheel or image"
done

commit=$(sh "$root/packaging/dist/commit.sh" id)
bill=$output/caisson-$version-linux-$machine.spdx.json
for other in "$output"/*.spdx.json; do
  if [ -f "$other" ] && [ "$other" != "$bill" ] && ! grep -qF "commit $commit" "$other"; then
    die "${other##*/} was built from another commit
  try: remove $output, then build for all architectures"
  fi
done

sh "$root/scripts/install_dependencies.sh" dist
sh "$root/scripts/build.sh" dist caisson caisson-mcp caisson-server caisson-broker caisson-image caisson-unpack caisson_library
mkdir -p "$work" "$output"
rm -rf "$stage"
DESTDIR=$stage cmake --install "$build" --prefix /usr --strip >"$build/install.log" ||
  die "cmake --install failed (log: $build/install.log)"
python3 -B "$root/packaging/dist/sbom.py" "$build" "$stage/usr" "$version" "$commit" \
  "$SOURCE_DATE_EPOCH" "$stage/usr/share/caisson/sbom.spdx.json"
make_manifest "$stage/usr" MANIFEST
set_times "$stage"

for artefact in "$@"; do
  say "packing $artefact"
  sh "$root/packaging/dist/$artefact.sh"
done

if [ -n "${CAISSON_CROSS:-}" ] && [ -f "$output/SHA256SUMS" ]; then
  (cd "$output" && grep -v -e "$machine" -e "$deb_arch" -e "linux-$npm_arch" SHA256SUMS | sha256sum --check --quiet --strict) ||
    die "an architecture-independent package differs from the one in the build for this machine"
fi
cp "$stage/usr/share/caisson/sbom.spdx.json" "$bill"
sh "$root/packaging/dist/sign.sh" --public "$output/caisson-signing.pub"
rm -f "$output/SHA256SUMS" "$output/SHA256SUMS.sig"
(cd "$output" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$output/SHA256SUMS"
sh "$root/packaging/dist/sign.sh" "$output/SHA256SUMS"
say "packages are in $output"
