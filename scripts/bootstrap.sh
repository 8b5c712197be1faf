#!/bin/sh
# bootstrap.sh PROGRAM: runs at the first call of ./caisson in a clone. Installs the build dependencies and builds
# build/PROGRAM. Writes only to standard error and reads no input: the payload uses standard input and output.
set -eu
. "$(dirname -- "$0")/lib.sh"
exec </dev/null 1>&2
if [ -z "${CAISSON_REBUILD:-}" ]; then
  say "first call: building build/$1"
else
  # All built programs must have the same version.
  for other in caisson-mcp caisson-image caisson-server; do
    if [ "$other" != "$1" ] && [ -e "$root/build/$other" ]; then set -- "$@" "$other"; fi
  done
fi
exec sh "$root/scripts/build.sh" --once release "$@"
