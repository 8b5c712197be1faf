#!/bin/sh
# test_clients.sh [--built]: tests the Python and TypeScript clients, curl and the AI SDK example with a real server.
# npm packages (TypeScript, pyright, Node 22, AI SDK) are installed once, in build/clients. Exits 1 if a test failed.
# --built: build/caisson and build/caisson-server exist already.
set -eu
. "$(dirname -- "$0")/lib.sh"
if [ "${1:-}" != --built ]; then sh "$root/scripts/build.sh" release caisson caisson-server; fi
suite=$root/build/clients
mkdir -p "$suite"
if ! command -v npm >/dev/null 2>&1 || ! command -v curl >/dev/null 2>&1; then
  CAISSON_LOG_FILE=$suite/dependencies.log sh "$root/scripts/install_dependencies.sh" --optional clients
fi
command -v npm >/dev/null 2>&1 || die "npm is missing; install the packages nodejs and npm"

# Copies the package in $1 to build/clients/$1 and installs the packages of its lock file. With an unreachable registry
# it must fail soon, not after npm's ten minutes of retries.
install() {
  package=$suite/$1
  mkdir -p "$package"
  (cd "$root/$1" && tar -cf - --exclude=node_modules --exclude=dist .) | tar -xf - -C "$package"
  if cmp -s "$package/package-lock.json" "$package/.installed.json"; then return; fi
  say "installing the packages of $1 (npm)"
  (cd "$package" && timeout 300 npm install --no-save --no-audit --no-fund --loglevel=error --fetch-retries=1 \
    --fetch-timeout=30000 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 >"$package/install.log" 2>&1) || {
    tail -n 20 "$package/install.log" >&2
    die "npm could not install the packages of $1; is its registry reachable?"
  }
  cp "$package/package-lock.json" "$package/.installed.json"
}
install clients/typescript
install examples/ai-sdk
install tests/clients
tools=$suite/tests/clients/node_modules
# npm may not run install scripts without consent; this one only installs the right binary.
[ -x "$tools/node/bin/node" ] || (cd "$suite/tests/clients" && npm rebuild node >>install.log 2>&1)

failed=
# run_test NAME COMMAND...
run_test() {
  name=$1
  shift
  if timeout 300 "$@" >"$suite/$name.log" 2>&1; then
    say "$name: passed"
  else
    cat "$suite/$name.log" >&2
    say "$name: FAILED"
    failed=1
  fi
}
export CAISSON_BIN="$root/build/caisson"
export CAISSON_CLIENT_SUITE="$suite/clients/typescript"
(cd "$suite/clients/typescript" && run_test typescript-build npm run build && [ -z "$failed" ]) || failed=1
run_test python-types "$tools/.bin/pyright" -p "$root/clients/python/pyproject.toml"
for name in transport python curl typescript examples; do run_test "$name" python3 "$root/tests/clients/${name}_test.py"; done
(cd "$suite/examples/ai-sdk" && run_test ai-sdk-types npm run check && [ -z "$failed" ]) || failed=1
run_test ai-sdk python3 "$root/tests/clients/ai_sdk_test.py" "$tools/node/bin/node" "$suite/examples/ai-sdk"
[ -z "$failed" ] || exit 1
