#!/bin/sh
# bench.sh [OPTION...]: builds the release and the benchmark, runs it, prints its table. Options go to bench/run.sh.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/build.sh" --bench release
exec sh "$root/bench/run.sh" "$root/build" "$@"
