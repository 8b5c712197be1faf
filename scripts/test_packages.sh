#!/bin/sh
# test_packages.sh [--arch ARCHITECTURE] [SUITE...]: builds the packages and runs tests/packages/SUITE_test.*; the
# default is all suites. Exits 1 if a test failed. CAISSON_DIST_READY=1: dist/ is already up to date.
# --arch: amd64 or arm64. For another architecture the suites are debian (lintian, booted machines) and release.
set -eu
. "$(dirname -- "$0")/lib.sh"
if [ "${1:-}" = --arch ]; then
  arch=$2
  shift 2
  sh "$root/scripts/install_dependencies.sh" build image dist packages
  run_for "$arch" sh "$0" "$@"
fi
if [ $# = 0 ] && [ -n "${CAISSON_CROSS:-}" ]; then set -- debian release; fi
if [ $# = 0 ]; then
  for file in "$root"/tests/packages/*_test.*; do
    name=${file##*/}
    set -- "$@" "${name%_test.*}"
  done
fi
sh "$root/scripts/install_dependencies.sh" packages
if [ -z "${CAISSON_DIST_READY:-}" ]; then sh "$root/scripts/dist.sh"; fi

failed=
for suite in "$@"; do
  file=
  for candidate in "$root/tests/packages/${suite}_test".*; do
    if [ -x "$candidate" ]; then file=$candidate; fi
  done
  [ -n "$file" ] || die "unknown suite \"$suite\": no tests/packages/${suite}_test.*"
  say "suite $suite"
  "$file" || failed="$failed $suite"
done
if [ -n "$failed" ]; then
  say "failed:$failed"
  exit 1
fi
