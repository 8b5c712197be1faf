#!/bin/sh
# bench.sh [OPTION...]: builds the release and the benchmark, runs it, prints its tables. Options go to bench/run.sh;
# without any, everything is measured.
# Leaves build/bench.json, and build/launch.svg (the README's chart) when launches were measured and the run was steady.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/build.sh" --bench release
rm -f "$root/build/bench.json"
if [ $# -eq 0 ]; then set -- --everything; fi
sh "$root/bench/run.sh" "$root/build" "$@" --json "$root/build/bench.json"
python3 "$root/bench/chart.py" "$root/build/bench.json" "$root/build/launch.svg" || :
