#!/bin/bash
# test_other.sh: builds the suites for the other architecture and runs them in an emulated machine (Linux 6.12, pure
# cgroup v2, root, and as an ordinary user where ctest lists it). The last line counts passed, failed and skipped tests.
# CAISSON_TEST_FILTER: only suites with a matching name. tests/bundle/not_emulated.txt lists those that an emulated
# machine is too slow for. Where a machine of that architecture exists, run build/caisson-tests-ARCHITECTURE.pyz there.
set -euo pipefail
source "$(dirname "$0")/../tests/vm/lib.sh"
root=$(cd "$(dirname "$0")/.." && pwd)
case $(dpkg --print-architecture) in amd64) other=arm64 ;; *) other=amd64 ;; esac
results=$root/build/test-results-$other
kernel=6.12

sh "$root/scripts/test_bundle.sh" "$other"
bash "$VM_SOURCE/build.sh" "$other" "$kernel"

job=$(mktemp -d "${TMPDIR:-/tmp}/caisson-other.XXXXXX")
trap 'rm -rf "$job"' EXIT
cp "$root/build/caisson-tests-$other.pyz" "$job/tests.pyz"
cp "$root/tests/bundle/not_emulated.txt" "$job/"
cat >"$job/run.sh" <<END
export CAISSON_TEST_SECONDS=1500 CAISSON_TEST_SLOWNESS=8 TMPDIR=/job/tmp
cd /job/tmp
exec python3 /job/tests.pyz --jobs 2 --without /job/not_emulated.txt --filter '${CAISSON_TEST_FILTER:-}' --results /job/out
END
rm -rf "$results"
status=0
bash "$VM_SOURCE/run.sh" -a "$other" -k "$kernel" -u root -l own -d "$job" -o "$results" \
  -t "${CAISSON_VM_SECONDS:-14400}" 'bash /job/run.sh' || status=$?
log "reports: ${results#"$root"/}"
exit "$status"
