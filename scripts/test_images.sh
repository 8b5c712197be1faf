#!/bin/sh
# test_images.sh [SUITE...]: runs the image suites. If root runs it, the suite of hostile archives runs as an ordinary
# user (as_user.sh).
# CAISSON_MEASURE=1 also compares with podman.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" --optional images
sh "$root/scripts/build.sh" release caisson-image
export CAISSON_BIN="$root/build/caisson" CAISSON_SOURCE_DIR="$root" CAISSON_CRASH_STEP="${CAISSON_CRASH_STEP:-1}"
if [ $# != 0 ]; then exec python3 "$root/tests/image/run.py" "$@"; fi
if [ "$(id -u)" != 0 ]; then exec python3 "$root/tests/image/run.py" local hostile build registry interop crash; fi
status=0
python3 "$root/tests/image/run.py" local build registry interop crash || status=1
sh "$root/scripts/as_user.sh" "$root/tests/image/run.py" "$root/build/images.user.xml" || status=1
exit $status
