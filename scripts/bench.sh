#!/bin/sh
# bench.sh [OPTION...]: builds the release and the benchmark, runs the benchmark and prints its tables. Options are
# passed to bench/run.sh; the default is --everything.
# Writes build/bench.json, and build/launch.svg (the README's chart) if launches were measured in a steady run.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/build.sh" --bench release
rm -f "$root/build/bench.json"
if [ $# -eq 0 ]; then set -- --everything; fi
sh "$root/bench/run.sh" "$root/build" "$@" --json "$root/build/bench.json"
python3 "$root/bench/chart.py" "$root/build/bench.json" "$root/build/launch.svg" || :
