#!/bin/sh
# Builds every fuzzer and runs each for SECONDS_EACH seconds (20) from its seeds, one per processor at a time; exits 1
# if one finds something.
set -eu
. "$(dirname -- "$0")/lib.sh"

fuzz() {
  name=${1##*/}
  work=$root/build-fuzz/corpus/$name
  mkdir -p "$work"
  seeds=$root/tests/fuzz/corpus/$name
  if [ ! -d "$seeds" ]; then seeds=; fi
  if ! "$1" -max_total_time="${SECONDS_EACH:-20}" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$root/build-fuzz/finding-$name-" "$work" ${seeds:+"$seeds"} >"$root/build-fuzz/$name.log" 2>&1; then
    tail -n 40 "$root/build-fuzz/$name.log" >&2
    say "$name found something; the input is build-fuzz/finding-$name-*"
    return 1
  fi
  say "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$root/build-fuzz/$name.log") inputs in ${SECONDS_EACH:-20} s"
}

if [ "${1:-}" = --one ]; then
  fuzz "$2"
  exit
fi

sh "$root/scripts/build.sh" --tests fuzz fuzzers
fuzzers=$(find "$root/build-fuzz/tests/fuzz" -maxdepth 1 -type f -perm -u+x | sort)
if [ -z "$fuzzers" ]; then
  say "there are no fuzzers in tests/fuzz"
  exit 1
fi
printf '%s\n' "$fuzzers" | tr '\n' '\0' | xargs -0 -n 1 -P "$(nproc)" sh "$0" --one || exit 1
