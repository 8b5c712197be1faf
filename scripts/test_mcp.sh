#!/bin/sh
# test_mcp.sh [--built]: tests the MCP server with the official conformance suite and the official clients. They come
# from npm, as does Node 22, and are installed once, in build/mcp-suite. Exits 1 if a scored test failed.
# --built: build/caisson, build/caisson-mcp and build/caisson-mcp-conformance exist already, and other builds may be running.
set -eu
. "$(dirname -- "$0")/lib.sh"
if [ "${1:-}" != --built ]; then sh "$root/scripts/build.sh" release caisson-mcp caisson-mcp-conformance; fi
suite=$root/build/mcp-suite
mkdir -p "$suite"
# Copies, so that the tested programs do not change during other builds.
caisson=$suite/caisson
cp "$root/build/caisson" "$caisson.new" && mv "$caisson.new" "$caisson"
cp "$root/build/caisson-mcp" "$root/build/caisson-mcp-conformance" "$suite/"
if ! command -v npm >/dev/null 2>&1; then
  CAISSON_LOG_FILE=$suite/install.log sh "$root/scripts/install_dependencies.sh" --optional mcp
fi
command -v npm >/dev/null 2>&1 || die "npm is missing; install the packages nodejs and npm"

if ! cmp -s "$root/tests/mcp/package-lock.json" "$suite/installed.json"; then
  say "installing the suite (npm)"
  cp "$root/tests/mcp/package.json" "$root/tests/mcp/package-lock.json" "$suite/"
  # Not `npm ci`: it rejects a lock file without the optional binaries of other systems, which a registry may lack. With
  # an unreachable registry it must fail soon, not after npm's ten minutes of retries.
  (cd "$suite" && timeout 180 npm install --no-save --no-audit --no-fund --loglevel=error --fetch-retries=1 \
    --fetch-timeout=30000 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 >install.log 2>&1) || {
    tail -n 20 "$suite/install.log" >&2
    die "npm could not install the official suite, which make test-mcp needs; is its registry reachable?"
  }
  cp "$root/tests/mcp/package-lock.json" "$suite/installed.json"
fi
# npm may not run install scripts without consent; this one only installs the right binary.
[ -x "$suite/node_modules/node/bin/node" ] || (cd "$suite" && npm rebuild node >>install.log 2>&1)
PATH=$suite/node_modules/node/bin:$PATH
export PATH

server=
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || :; fi' EXIT
# Starts `caisson mcp ARGS... --http 0` and sets $url.
start() {
  log=$suite/server.log
  rm -f "$log"
  "$caisson" mcp "$@" --http 0 2>"$log" &
  server=$!
  url=
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ ! -f "$log" ] || url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$log")
    [ -z "$url" ] || return 0
    sleep 0.25
  done
  cat "$log" >&2
  die "the server did not start"
}
stop() {
  kill "$server"
  wait "$server" || :
  server=
}

failed=
conformance() {
  name=$1
  shift
  rm -rf "$suite/results-$name"
  if node "$suite/node_modules/.bin/conformance" server --url "$url" "$@" -o "$suite/results-$name" \
    >"$suite/$name.txt" 2>&1; then
    say "conformance $name: all scored tests passed; $(sed -n 's/^Total: //p; s/^Passed: /passed: /p' "$suite/$name.txt" |
      tail -n 1)$(sed -n 's/^Not scored for [^:]*: \([^.]*\)\..*/ (not scored: \1)/p' "$suite/$name.txt")"
  else
    sed -n '/=== SUMMARY/,$p' "$suite/$name.txt" >&2
    say "conformance $name: FAILED (build/mcp-suite/$name.txt)"
    failed=1
  fi
}

for version in 2026-07-28 2025-11-25; do
  start --conformance
  conformance "fixture-$version" --requirements "$version"
  stop
done

# The suite scores only what its reference passes. Here every server scenario must pass, by name.
node "$suite/node_modules/.bin/conformance" list --server >"$suite/offered.txt"
python3 "$root/tests/mcp/check_scenarios.py" "$suite/offered.txt" "2026-07-28=$suite/fixture-2026-07-28.txt" \
  "2025-11-25=$suite/fixture-2025-11-25.txt" >&2 || failed=1

# The real server has no fixtures, but scenarios that need none must pass too.
CAISSON_HOME=$(mktemp -d)
export CAISSON_HOME
start --http-without-token
for scenario in tools-list resources-list prompts-list caching dns-rebinding-protection sep-2164-resource-not-found \
  http-header-validation server-sse-multiple-streams; do
  conformance "real-2026-07-28-$scenario" --scenario "$scenario" --spec-version 2026-07-28
done
for scenario in server-initialize ping logging-set-level server-session-lifecycle tools-list resources-list prompts-list \
  dns-rebinding-protection server-sse-multiple-streams; do
  conformance "real-2025-11-25-$scenario" --scenario "$scenario" --spec-version 2025-11-25
done
stop

scratch=$(mktemp -d)
say "running the official clients"
(cd "$suite" && node "$root/tests/mcp/clients.mjs" "$caisson" "$scratch") >&2 || failed=1
[ -z "$failed" ] || exit 1
