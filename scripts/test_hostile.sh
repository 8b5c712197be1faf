#!/bin/sh
# test_hostile.sh [FILTER]: runs the tests in tests/hostile in two parallel processes, for at most five minutes.
# Root runs all of them twice: as root and as an ordinary user, each in a separate PID namespace, so that no test can
# signal a process of this machine. Other users run one half in each process. Output goes to
# build/test-results/hostile-NAME.log; the last line counts passed, failed and skipped tests.
set -eu
. "$(dirname -- "$0")/lib.sh"
export GTEST_FILTER="${1:-*}"
dir=$root/build
program=$dir/tests/hostile/hostile_sibling
results=$dir/test-results
sh "$root/scripts/build.sh" --tests release caisson payload hostile_sibling
mkdir -p "$results"
rm -f "$results"/hostile-*.log
export CAISSON_BIN="$dir/caisson" CAISSON_PAYLOAD="$dir/tests/payloads/payload" CAISSON_SOURCE_DIR="$root"

# start NAME COMMAND...: runs COMMAND in the background, with its output in hostile-NAME.log.
pids=
start() {
  log=$results/hostile-$1.log
  shift
  timeout --kill-after=5 300 "$@" >"$log" 2>&1 </dev/null &
  pids="$pids $!"
}
if [ "$(id -u)" = 0 ]; then
  start root unshare --pid --fork --kill-child --mount-proc "$program"
  start user unshare --pid --fork --kill-child --mount-proc \
    sh "$root/scripts/as_user.sh" "$program" "$results/hostile-user.xml"
else
  start first env GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=0 "$program"
  start second env GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=1 "$program"
fi

status=0
for pid in $pids; do wait "$pid" || status=1; done
for log in "$results"/hostile-*.log; do
  name=${log##*/}
  sed -n "s/^\\[  FAILED  \\] \\(.*\\), where .* (\\([0-9]* ms\\))\$/${name%.log}: failed: \\1 (\\2)/p" "$log"
  # A process killed by the time limit printed no summary.
  if ! grep -q '^\[==========\] .* ran\.' "$log"; then
    printf '%s: did not finish: %s\n' "${name%.log}" "$(grep '^\[ RUN' "$log" | tail -n 1)"
  fi
done
count() { cat "$results"/hostile-*.log | grep -c "$1" || :; }
printf '%s passed, %s failed, %s skipped\n' "$(count '^\[       OK \]')" "$(count '^\[  FAILED  \] .* ms)$')" \
  "$(count '^\[  SKIPPED \] .* ms)$')"
if [ "$(count '^\[ RUN')" = 0 ]; then die "no test matches $GTEST_FILTER"; fi
exit $status
