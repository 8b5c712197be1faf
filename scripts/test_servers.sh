#!/bin/sh
# test_servers.sh: runs PostgreSQL, SQLite, Redis and Chromium inside a sandbox. If root runs it, the tests also run as
# an ordinary user. Tests of programs that cannot be installed are skipped.
set -eu
. "$(dirname -- "$0")/lib.sh"
dir=$root/build
program=$dir/tests/functional/functional_servers
sh "$root/scripts/build.sh" --tests release caisson payload functional_servers
CAISSON_LOG_FILE=$dir/build.log sh "$root/scripts/install_dependencies.sh" --optional servers
export CAISSON_BIN="$dir/caisson" CAISSON_PAYLOAD="$dir/tests/payloads/payload" CAISSON_SOURCE_DIR="$root"
mkdir -p "$dir/test-results"
"$program"
if [ "$(id -u)" = 0 ]; then sh "$root/scripts/as_user.sh" "$program" "$dir/test-results/servers-user.xml"; fi
