#!/bin/sh
# First call of ./caisson in a clone: installs the build dependencies and builds build/caisson.
# Writes to standard error only and reads no input: standard input and output belong to the payload.
set -eu
. "$(dirname -- "$0")/lib.sh"
exec </dev/null 1>&2
if [ -z "${CAISSON_REBUILD:-}" ]; then say "first call here: building build/caisson once"; fi
exec sh "$root/scripts/build.sh" --once release caisson
