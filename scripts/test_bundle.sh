#!/bin/sh
# test_bundle.sh ARCHITECTURE: builds the programs and suites for amd64 or arm64 and packs them into one file,
# build/caisson-tests-ARCHITECTURE.pyz. `python3 FILE` runs them on a machine that has neither the source nor a compiler.
set -eu
. "$(dirname -- "$0")/lib.sh"
arch=${1:-$(dpkg --print-architecture)}
if [ -z "${CAISSON_BUNDLE:-}" ]; then
  sh "$root/scripts/install_dependencies.sh" build image test
  export CAISSON_BUNDLE=1
  run_for "$arch" sh "$0" "$arch"
fi
build=$root/build${CAISSON_CROSS:+-$CAISSON_CROSS}
sh "$root/scripts/build.sh" --tests release
case ${CAISSON_CROSS:-} in
  amd64) STRIP=x86_64-linux-gnu-strip ;;
  arm64) STRIP=aarch64-linux-gnu-strip ;;
  *) STRIP=strip ;;
esac
export STRIP
mkdir -p "$root/build"
exec python3 -B "$root/tests/bundle/make.py" "$build" "$arch" "$root/build/caisson-tests-$arch.pyz"
