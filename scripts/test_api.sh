#!/bin/sh
# test_api.sh [SUITE...]: tests of the HTTP API, by default all suites, which include load, many kills, property-based
# requests, a browser and systemd, and a lint of the OpenAPI document by @redocly/cli. npm packages are installed in
# build/api.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" build
sh "$root/scripts/install_dependencies.sh" --optional test api
if ! command -v npm >/dev/null 2>&1; then sh "$root/scripts/install_dependencies.sh" mcp; fi
sh "$root/scripts/build.sh" --tests release caisson-server caisson-server-moved-clock caisson-image
export CAISSON_BIN="$root/build/caisson" CAISSON_ROUNDS="${CAISSON_ROUNDS:-30}"
export CAISSON_API_NODE="$root/build/api"
mkdir -p "$CAISSON_API_NODE"
cp "$root"/tests/api/node/* "$CAISSON_API_NODE"
if ! cmp -s "$CAISSON_API_NODE/package-lock.json" "$CAISSON_API_NODE/.installed.json"; then
  say "installing the packages of tests/api/node (npm)"
  (cd "$CAISSON_API_NODE" && timeout 300 npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000)
  # npm may not run install scripts without consent; this one only installs the right binary.
  [ -x "$CAISSON_API_NODE/node_modules/node/bin/node" ] || (cd "$CAISSON_API_NODE" && npm rebuild node)
  cp "$CAISSON_API_NODE/package-lock.json" "$CAISSON_API_NODE/.installed.json"
fi

# Exit status 77 means skipped: a dependency is missing, and the output names it.
run_suite() {
  say "suite $1"
  shift
  status=0
  "$@" || status=$?
  [ "$status" = 0 ] || [ "$status" = 77 ] || exit "$status"
}
for suite in ${*:-sandboxes commands files server_routes images tenants workspaces bounds bad_input crash listeners disk_full state_files clock properties browser systemd load}; do
  run_suite "$suite" python3 "$root/tests/api/${suite}_test.py"
done
[ $# = 0 ] || exit 0
# Tests that run as root can hide errors, so repeat them as an ordinary user if that user can access the clone.
if [ "$(id -u)" = 0 ] && id tester >/dev/null 2>&1 && runuser -u tester -- test -x "$CAISSON_BIN"; then
  for suite in sandboxes commands files server_routes tenants workspaces bounds crash disk_full state_files clock; do
    run_suite "$suite, as an ordinary user" runuser -u tester -- env CAISSON_BIN="$CAISSON_BIN" CAISSON_ROUNDS=4 \
      python3 "$root/tests/api/${suite}_test.py"
  done
fi
place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
python3 "$root/tests/api/document.py" >"$place/openapi.json"
cp "$root/tests/api/redocly.yaml" "$place"
cd "$place"
npm install --silent --no-audit --no-fund @redocly/cli@2
npx --no-install redocly lint --config redocly.yaml openapi.json
