#!/bin/bash
# limits.sh BUILD_DIR [ROUNDS]: measures the cost of the cgroup for a launch, as root. Runs the same program alternately
# with the host's cgroups and with an empty directory mounted over them in a private namespace. Target: at most 10 %.
set -euo pipefail
build=$(cd "${1:?usage: limits.sh BUILD_DIR [ROUNDS]}" && pwd)
rounds=${2:-20}
repeat=$build/bench/repeat
[ -x "$repeat" ] || repeat=$build/repeat
each=15
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
launch=("$repeat" $each "$build/caisson" run --workspace :none -- true)
for ((round = 0; round < rounds; ++round)); do
  "${launch[@]}" >>"$work/with" 2>/dev/null
  unshare -m sh -c 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"' sh "${launch[@]}" >>"$work/without" 2>/dev/null
done
python3 - "$work/with" "$work/without" <<'PYTHON'
import sys

times = [sorted(int(line) / 1e6 for line in open(path)) for path in sys.argv[1:]]
limited, free = (each[len(each) // 2] for each in times)
print(f"{'launch, median of ' + str(len(times[0])):<32}{'ms':>8}")
print(f"{'caisson full':<32}{limited:>8.2f}")
print(f"{'caisson without limits':<32}{free:>8.2f}")
print(f"cost of limits: {100 * (limited / free - 1):.1f} % (target: at most 10 %)")
PYTHON
