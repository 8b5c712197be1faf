#!/bin/sh
# Builds every fuzzer and runs each for SECONDS_EACH seconds (20) from its seeds; a finding stops it, exit 1.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/build.sh" --tests fuzz fuzzers
found=
for fuzzer in "$root"/build-fuzz/tests/fuzz/*; do
  if [ ! -f "$fuzzer" ] || [ ! -x "$fuzzer" ]; then continue; fi
  found=1
  name=${fuzzer##*/}
  work=$root/build-fuzz/corpus/$name
  mkdir -p "$work"
  seeds=$root/tests/fuzz/corpus/$name
  if [ ! -d "$seeds" ]; then seeds=; fi
  say "fuzzing $name for ${SECONDS_EACH:-20} s"
  if ! "$fuzzer" -max_total_time="${SECONDS_EACH:-20}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$root/build-fuzz/finding-$name-" "$work" ${seeds:+"$seeds"} >"$root/build-fuzz/$name.log" 2>&1; then
    tail -n 40 "$root/build-fuzz/$name.log" >&2
    say "$name found something; the input is build-fuzz/finding-$name-*"
    exit 1
  fi
  grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "$root/build-fuzz/$name.log" >&2 || :
done
if [ -z "$found" ]; then
  say "there are no fuzzers in tests/fuzz"
  exit 1
fi
