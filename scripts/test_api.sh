#!/bin/sh
# The HTTP API: all suites, load, and a lint of the OpenAPI document by @redocly/cli (installed from npm).
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" build mcp
sh "$root/scripts/build.sh" release caisson-server
export CAISSON_BIN="$root/build/caisson"
for suite in routes tenants bad_input crash listeners load; do
  python3 "$root/tests/api/${suite}_test.py"
done
# Root hides mistakes: the same as an ordinary user, where one can reach the clone.
if [ "$(id -u)" = 0 ] && id tester >/dev/null 2>&1 && runuser -u tester -- test -x "$CAISSON_BIN"; then
  for suite in routes tenants crash; do
    runuser -u tester -- env CAISSON_BIN="$CAISSON_BIN" python3 "$root/tests/api/${suite}_test.py"
  done
fi
place=$(mktemp -d)
trap 'rm -rf --one-file-system "$place"' EXIT
python3 "$root/tests/api/document.py" >"$place/openapi.json"
cp "$root/tests/api/redocly.yaml" "$place"
cd "$place"
npm install --silent --no-audit --no-fund @redocly/cli@2
npx --no-install redocly lint --config redocly.yaml openapi.json
