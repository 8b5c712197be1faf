#!/bin/sh
# bench.sh [OPTION...]: builds the release and the benchmark, runs it, prints its table. Options go to bench/.
# The targets are about an ordinary user, so root runs it as `caisson-tester`.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/build.sh" --bench release
program=$root/build/bench/bench
set -- --caisson "$root/build/caisson" "$@"
if [ "$(id -u)" != 0 ] || [ -n "${CAISSON_BENCH_AS_ROOT:-}" ]; then exec "$program" "$@"; fi

user=caisson-tester
if ! id -u "$user" >/dev/null 2>&1; then useradd -m -s /bin/sh "$user"; fi
as_user="setpriv --reuid $user --regid $(id -g "$user") --init-groups --inh-caps=-all --"
$as_user test -x "$program" || die "$user can't reach $program
  try: clone where every user may read, or CAISSON_BENCH_AS_ROOT=1 make bench"
home=$(getent passwd "$user" | cut -d: -f6)
cd "$home"
exec $as_user env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" USER="$user" LANG=C.UTF-8 "$program" "$@"
