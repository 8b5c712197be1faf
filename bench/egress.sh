#!/bin/sh
# egress.sh CAISSON TOOL: compares the cost of the egress with alternatives, in one run and in turn.
#
# Everything runs in separate network namespaces (tests/network/world.sh creates them). Rows: the server reached
# directly, through a bare splice relay (the floor of any relay), through socat, tinyproxy and squid if installed, and
# from a sandbox through the egress. Columns: MB/s of one transfer; median ms from connect to the first byte. Then the
# memory of the egress with a thousand open connections, and what `--net proxy` adds to a launch. Run as an ordinary
# user.
set -eu
here=$(cd -- "$(dirname -- "$0")" && pwd)
caisson=$1
tool=$2
if [ -z "${CAISSON_TEST_INTERNET:-}" ]; then exec sh "$here/../tests/network/world.sh" sh "$0" "$@"; fi
rounds=${ROUNDS:-5}
bytes=${BYTES:-400000000}
launches=${LAUNCHES:-40}
work=$(mktemp -d /tmp/caisson-egress-bench.XXXXXX)
pids=
leave() {
  for pid in $pids; do kill "$pid" 2>/dev/null || :; done
  wait
  case $work in /tmp/caisson-egress-bench.*) rm -rf -- "$work" ;; esac # only this script and the proxies write there
}
trap leave EXIT
background() {
  "$@" >"$work/log" 2>&1 &
  pids="$pids $!"
}
has() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }
# The server runs in the internet's namespace, which the name server of world.sh keeps open.
background nsenter --target "$CAISSON_TEST_INTERNET_PID" --net "$tool" serve 93.184.0.4 7000
background "$tool" relay 7001 93.184.0.4 7000
others=
if has socat; then
  background socat TCP-LISTEN:7002,bind=127.0.0.1,fork,reuseaddr TCP:93.184.0.4:7000
  others="$others socat"
fi
if has tinyproxy; then
  printf 'Port 7003\nListen 127.0.0.1\nMaxClients 200\nConnectPort 7000\nLogLevel Critical\n' >"$work/tinyproxy.conf"
  background tinyproxy -d -c "$work/tinyproxy.conf"
  others="$others tinyproxy"
fi
if has squid; then
  cat >"$work/squid.conf" <<SQUID
http_port 127.0.0.1:7004
http_access allow all
cache deny all
access_log none
cache_log $work/squid.log
pid_filename none
coredump_dir $work
shutdown_lifetime 0 seconds
pinger_enable off
SQUID
  PATH="$PATH:/usr/sbin" background squid -N -n bench$$ -f "$work/squid.conf"
  others="$others squid"
fi
policy() { # policy FILE MODE CONNECTIONS
  cat >"$work/$1" <<POLICY
extends = "bash"
[network]
mode = "$2"
allowed_hosts = ["93.184.0.4:7000"]
dns_servers = ["93.184.0.2"]
max_connections = $3
[resources]
cpus = 2
open_files = 4096
POLICY
}
policy policy.toml proxy 64
policy many.toml proxy 1100
policy none.toml none 64
sleep 2
sandboxed() { "$caisson" run --quiet --policy "$work/policy.toml" --workspace :none --ro "$tool" -- "$tool" "$@"; }
fetchBy() { # fetchBy NAME BYTES TIMES
  case $1 in
  direct) set -- "$@" "$tool" fetch 93.184.0.4 7000 ;;
  splice) set -- "$@" "$tool" fetch 127.0.0.1 7001 ;;
  socat) set -- "$@" "$tool" fetch 127.0.0.1 7002 ;;
  tinyproxy) set -- "$@" "$tool" via 127.0.0.1 7003 93.184.0.4 7000 ;;
  squid) set -- "$@" "$tool" via 127.0.0.1 7004 93.184.0.4 7000 ;;
  egress) set -- "$@" sandboxed fetch 93.184.0.4 7000 ;;
  esac
  file=$work/$1-$3.row wanted=$2 times=$3
  shift 3
  "$@" "$wanted" "$times" >>"$file"
}
middle() { sort -n | sed -n "$((rounds / 2 + 1))p"; }
round=0
while [ $round -lt "$rounds" ]; do
  round=$((round + 1))
  for name in direct splice $others egress; do fetchBy "$name" "$bytes" 1; done
  for name in direct splice $others egress; do fetchBy "$name" 1 200; done
  for mode in none policy; do
    "$tool" time "$launches" "$caisson" run --quiet --policy "$work/$mode.toml" --workspace :none -- true \
      >>"$work/launch-$mode.row"
  done
done
for name in direct splice $others egress; do
  rate=$(cut -d' ' -f1 "$work/$name-1.row" | middle)
  delay=$(cut -d' ' -f2 "$work/$name-200.row" | middle)
  printf '%-10s %8s MB/s  %8s ms\n' "$name" "$rate" "$delay"
done

# A thousand connections, each of which has transferred data.
"$caisson" run --quiet --policy "$work/many.toml" --workspace :none --ro "$tool" -- \
  "$tool" hold 93.184.0.4 7000 1000 8 >"$work/held" &
holder=$!
rss() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status"; }
egress=
tries=0
until [ -n "$egress" ] || [ $tries -ge 500 ]; do
  egress=$(pgrep -P "$holder" -f __egress || :)
  tries=$((tries + 1))
  sleep 0.01
done
before=$(rss "$egress")
tries=0
until grep -q held "$work/held" || [ $tries -ge 700 ]; do
  tries=$((tries + 1))
  sleep 0.01
done
after=$(rss "$egress")
grep -q held "$work/held"
wait "$holder"
printf '1000 connections: %s KiB each beyond %s KiB\n' \
  "$(awk "BEGIN { printf \"%.1f\", ($after - $before) / 1000 }")" "$before"
printf 'a launch: %s ms without network, %s ms with --net proxy\n' \
  "$(middle <"$work/launch-none.row")" "$(middle <"$work/launch-policy.row")"
