#!/bin/sh
# bootstrap.sh PROGRAM: first call of ./caisson in a clone. Installs the build dependencies and builds build/PROGRAM.
# Writes to standard error only and reads no input: standard input and output belong to the payload.
set -eu
. "$(dirname -- "$0")/lib.sh"
exec </dev/null 1>&2
if [ -z "${CAISSON_REBUILD:-}" ]; then
  say "first call here: building build/$1 once"
else
  # All programs that are here must have the same version.
  for other in caisson-mcp caisson-image caisson-server; do
    if [ "$other" != "$1" ] && [ -e "$root/build/$other" ]; then set -- "$@" "$other"; fi
  done
fi
exec sh "$root/scripts/build.sh" --once release "$@"
