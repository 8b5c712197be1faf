#!/bin/sh
# world.sh PROGRAM ARG...: runs PROGRAM with a fake internet.
#
# Two connected network namespaces: "host", where PROGRAM and so caisson's egress runs, and "internet", where internet.py
# serves DNS, HTTP, HTTPS and more on addresses from public ranges. No packet leaves this machine; everything disappears
# when this process exits.
set -eu
here=$(dirname -- "$0")
if [ "${CAISSON_TEST_WORLD:-}" = "" ]; then
  export CAISSON_TEST_WORLD=made
  if [ "$(id -u)" = 0 ]; then exec unshare --net sh "$0" "$@"; fi
  exec unshare --user --net --map-current-user --keep-caps sh "$0" "$@"
fi
state=$(mktemp -d /tmp/caisson-world.XXXXXX)
internet=
server=
leave() {
  status=$?
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || :; fi
  if [ -n "$internet" ]; then kill "$internet" 2>/dev/null || :; fi
  case $state in /tmp/caisson-world.*) rm -rf -- "$state" ;; esac # only this script and internet.py write there
  exit $status
}
trap leave EXIT
trap 'exit 1' HUP INT TERM
ip link set lo up
unshare --net sleep 3600 >/dev/null 2>&1 &
internet=$!
tries=0
while [ "$(readlink "/proc/$internet/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do
  tries=$((tries + 1))
  [ $tries -lt 500 ]
  sleep 0.01
done
ip link add cable0 type veth peer name cable1 netns "$internet"
ip addr add 93.184.0.1/16 dev cable0
ip -6 addr add 2606:4700:aa::1/64 dev cable0 nodad
ip link set cable0 up
inside() { nsenter --target "$internet" --net "$@"; }
inside ip link set lo up
for address in 93.184.0.2 93.184.0.3 93.184.0.4 93.184.0.5; do inside ip addr add $address/16 dev cable1; done
inside ip -6 addr add 2606:4700:aa::2/64 dev cable1 nodad
inside ip link set cable1 up
for kind in ca server; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$state/$kind-key.pem" \
    -out "$state/$kind.pem" -subj "/CN=example.org" \
    -addext "subjectAltName=DNS:example.org,DNS:*.example.org,DNS:evil.test,IP:93.184.0.4" 2>/dev/null
done
# An expired certificate, and one for another name.
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$state/expired-key.pem" \
  -out "$state/expired.csr" -subj "/CN=example.org" -addext "subjectAltName=DNS:example.org" 2>/dev/null
mkdir "$state/issued"
: >"$state/issued/index"
printf '[x]\nnew_certs_dir = %s\ndatabase = %s\nserial = %s\ndefault_md = sha256\npolicy = p\ncopy_extensions = copy\n[p]\n' \
  "$state/issued" "$state/issued/index" "$state/issued/serial" >"$state/issued/config"
printf 'commonName = optional\n' >>"$state/issued/config"
openssl ca -batch -notext -config "$state/issued/config" -name x -rand_serial -cert "$state/ca.pem" \
  -keyfile "$state/ca-key.pem" -in "$state/expired.csr" -out "$state/expired.pem" \
  -startdate 20200101000000Z -enddate 20210101000000Z 2>/dev/null
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -keyout "$state/wrong-key.pem" \
  -out "$state/wrong.pem" -subj "/CN=wrong.test" -addext "subjectAltName=DNS:wrong.test" 2>/dev/null
chmod 0755 "$state"
chmod 0644 "$state"/*.pem
# The full command instead of a function: a function would run in a subshell, and killing that would not stop the servers.
nsenter --target "$internet" --net python3 "$here/internet.py" "$state" >"$state/errors" 2>&1 &
server=$!
tries=0
until [ -e "$state/ready" ]; do
  tries=$((tries + 1))
  if [ $tries -ge 1000 ] || ! kill -0 "$server" 2>/dev/null; then
    cat "$state/errors" >&2
    exit 1
  fi
  sleep 0.01
done
export CAISSON_TEST_INTERNET="$state" CAISSON_TEST_INTERNET_PID="$internet"
status=0
"$@" || status=$?
exit $status
