#!/bin/sh
# test.sh PRESET: builds the suites and runs them; the last line is `N passed, N failed, N skipped`.
# Tests wait most of the time: four at a time for each processor keep the processors busy (CAISSON_JOBS selects others).
# CAISSON_MUST_RUN=1 counts a skipped test as failed. CAISSON_TEST_ARGS is passed to ctest ("-L security", "-R unit").
set -eu
. "$(dirname -- "$0")/lib.sh"
preset=${1:-release}
case $preset in release) dir=$root/build ;; *) dir=$root/build-$preset ;; esac

sh "$root/scripts/build.sh" --tests "$preset"
CAISSON_LOG_FILE=$dir/build.log sh "$root/scripts/install_dependencies.sh" --optional programs

results=$dir/test-results
mkdir -p "$results"
rm -f "$results"/*.xml

# Static helpers are not sanitized, and a child that exits by _exit reports no leaks.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1}"

# shellcheck disable=SC2086  # CAISSON_TEST_ARGS is a list of words
ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "${CAISSON_JOBS:-$((4 * $(nproc)))}" \
  --output-junit "$results/ctest.xml" ${CAISSON_TEST_ARGS:-} </dev/null || :
exec python3 "$root/scripts/test_summary.py" "$results"
