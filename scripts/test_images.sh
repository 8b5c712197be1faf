#!/bin/sh
# test_images.sh [SUITE...]: runs the image suites, by default all. If root runs it, the suite of hostile archives always
# runs as an ordinary user (as_user.sh).
# CAISSON_MEASURE=1 also compares with podman.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" --optional images
sh "$root/scripts/build.sh" release caisson-image
export CAISSON_BIN="$root/build/caisson" CAISSON_SOURCE_DIR="$root" CAISSON_CRASH_STEP="${CAISSON_CRASH_STEP:-1}"
as_user='local names hostile build'
if [ $# != 0 ]; then as_user=hostile; else set -- local names hostile build registry trust interop crash; fi
if [ "$(id -u)" != 0 ]; then exec python3 "$root/tests/image/run.py" "$@"; fi

others=
hostile=
for suite in "$@"; do
  if [ "$suite" = hostile ]; then hostile=1; else others="$others $suite"; fi
done
status=0
# shellcheck disable=SC2086
if [ -n "$others" ]; then python3 "$root/tests/image/run.py" $others || status=1; fi
# shellcheck disable=SC2086
if [ -n "$hostile" ]; then
  sh "$root/scripts/as_user.sh" "$root/tests/image/run.py" "$root/build/images.user.xml" $as_user || status=1
fi
exit $status
