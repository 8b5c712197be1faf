#!/bin/sh
# npm.sh: builds caisson-VERSION.tgz, caisson-linux-ARCHITECTURE-VERSION.tgz and caisson-client-VERSION.tgz from the staged
# tree. TypeScript is installed from npm once, into the build directory.
set -eu
. "$(dirname -- "$0")/lib.sh"
. "$root/packaging/dist/portable.sh"
command -v npm >/dev/null 2>&1 || sh "$root/scripts/install_dependencies.sh" clients
client=$build/typescript
mkdir -p "$client"
rm -rf "$client/src" "$client/dist"
(cd "$root/clients/typescript" && tar -cf - --exclude=node_modules --exclude=dist .) | tar -xf - -C "$client"
if ! cmp -s "$client/package-lock.json" "$client/.installed.json"; then
  say "installing TypeScript (npm)"
  (cd "$client" && timeout 300 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1 \
    --fetch-timeout=30000 >"$client/install.log" 2>&1) || {
    tail -n 20 "$client/install.log" >&2
    die "npm could not install TypeScript; is its registry reachable?"
  }
  cp "$client/package-lock.json" "$client/.installed.json"
fi
(cd "$client" && node_modules/.bin/tsc) || die "the TypeScript client does not compile"
python3 -B "$root/packaging/npm/pack.py" "$client"
