#!/bin/sh
# egress.sh CAISSON TOOL: what the egress costs, beside what else could stand there, in one run and in turn.
#
# Everything happens in network namespaces of its own (tests/network/world.sh makes them). Rows: the server reached
# directly, through a bare splice relay (the floor of anything in between), through socat where it is installed, and
# from a sandbox through the egress. Columns: MB/s of one transfer; median ms from connect to the first byte.
# Run as an ordinary user.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
caisson=$1
tool=$2
if [ -z "${CAISSON_TEST_INTERNET:-}" ]; then exec sh "$here/../tests/network/world.sh" sh "$0" "$@"; fi
rounds=${ROUNDS:-5}
bytes=${BYTES:-400000000}
work=$(mktemp -d /tmp/caisson-egress-bench.XXXXXX)
pids=
leave() {
  for pid in $pids; do kill "$pid" 2>/dev/null || :; done
  rm -f "$work"/policy.toml "$work"/*.row
  rmdir "$work"
}
trap leave EXIT
# The server runs in the internet's namespace, which world.sh keeps open for us by its name server.
inside=$(pgrep -f "internet.py $CAISSON_TEST_INTERNET" | head -1)
nsenter --target "$inside" --net "$tool" serve 93.184.0.4 7000 &
pids="$pids $!"
"$tool" relay 7001 93.184.0.4 7000 &
pids="$pids $!"
if command -v socat >/dev/null; then
  socat TCP-LISTEN:7002,bind=127.0.0.1,fork,reuseaddr TCP:93.184.0.4:7000 &
  pids="$pids $!"
fi
cat >"$work/policy.toml" <<POLICY
extends = "bash"
[network]
mode = "proxy"
allowed_hosts = ["93.184.0.4:7000"]
dns_servers = ["93.184.0.2"]
[resources]
cpus = 2
POLICY
sleep 0.5
row() { # row NAME SIZE TIMES COMMAND...
  name=$1
  size=$2
  times=$3
  shift 3
  "$@" "$size" "$times" >>"$work/$name.row"
}
sandboxed() { "$caisson" run --quiet --policy "$work/policy.toml" --workspace :none --ro "$tool" -- "$tool" "$@"; }
round=0
while [ $round -lt "$rounds" ]; do
  round=$((round + 1))
  for size in "$bytes:1" 1:200; do
    row "direct-${size#*:}" "${size%:*}" "${size#*:}" "$tool" fetch 93.184.0.4 7000
    row "splice-${size#*:}" "${size%:*}" "${size#*:}" "$tool" fetch 127.0.0.1 7001
    if command -v socat >/dev/null; then row "socat-${size#*:}" "${size%:*}" "${size#*:}" "$tool" fetch 127.0.0.1 7002; fi
    row "egress-${size#*:}" "${size%:*}" "${size#*:}" sandboxed fetch 93.184.0.4 7000
  done
done
for name in direct splice socat egress; do
  [ -e "$work/$name-1.row" ] || continue
  rate=$(cut -d' ' -f1 "$work/$name-1.row" | sort -n | sed -n "$((rounds / 2 + 1))p")
  delay=$(cut -d' ' -f2 "$work/$name-200.row" | sort -n | sed -n "$((rounds / 2 + 1))p")
  printf '%-8s %8s MB/s  %8s ms\n' "$name" "$rate" "$delay"
done
