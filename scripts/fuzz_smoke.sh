#!/bin/sh
# Builds all fuzzers and runs each from its seeds for SECONDS_EACH seconds (default: 20), one per processor at a time.
# Exits 1 if a fuzzer finds a failing input.
set -eu
. "$(dirname -- "$0")/lib.sh"

seconds=${SECONDS_EACH:-20}
# For short runs, an optimised build takes longer than it saves.
preset=fuzz
if [ "$seconds" -lt 5 ]; then preset=fuzz-quick; fi
dir=$root/build-$preset

fuzz() {
  name=${1##*/}
  work=$dir/corpus/$name
  mkdir -p "$work"
  seeds=$root/tests/fuzz/corpus/$name
  if [ ! -d "$seeds" ]; then seeds=; fi
  if ! "$1" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$dir/finding-$name-" "$work" ${seeds:+"$seeds"} >"$dir/$name.log" 2>&1; then
    tail -n 40 "$dir/$name.log" >&2
    say "$name found a failing input: build-$preset/finding-$name-*"
    return 1
  fi
  say "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/$name.log") inputs in $seconds s"
}

if [ "${1:-}" = --one ]; then
  fuzz "$2"
  exit
fi

sh "$root/scripts/build.sh" --tests $preset fuzzers
fuzzers=$(find "$dir/tests/fuzz" -maxdepth 1 -type f -perm -u+x | sort)
if [ -z "$fuzzers" ]; then
  say "there are no fuzzers in tests/fuzz"
  exit 1
fi
printf '%s\n' "$fuzzers" | tr '\n' '\0' | xargs -0 -n 1 -P "$(nproc)" sh "$0" --one || exit 1
