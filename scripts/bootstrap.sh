#!/bin/sh
# bootstrap.sh PROGRAM: first call of ./caisson in a clone. Installs the build dependencies and builds build/PROGRAM.
# Writes to standard error only and reads no input: standard input and output belong to the payload.
set -eu
. "$(dirname -- "$0")/lib.sh"
exec </dev/null 1>&2
if [ -z "${CAISSON_REBUILD:-}" ]; then
  say "first call here: building build/$1 once"
elif [ -e "$root/build/caisson-mcp" ]; then
  set -- caisson-mcp # which includes build/caisson: both are of the same version
fi
exec sh "$root/scripts/build.sh" --once release "$1"
