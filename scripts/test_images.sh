#!/bin/sh
# test_images.sh [SUITE...]: the image suites, as root and as an ordinary user; CAISSON_MEASURE=1 also compares with podman.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" --optional images
sh "$root/scripts/build.sh" release caisson-image
if [ $# = 0 ]; then set -- local hostile build registry interop crash; fi
export CAISSON_BIN="$root/build/caisson" CAISSON_SOURCE_DIR="$root" CAISSON_CRASH_STEP="${CAISSON_CRASH_STEP:-1}"
exec python3 "$root/tests/image/run.py" "$@"
