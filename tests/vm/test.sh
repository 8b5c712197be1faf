#!/bin/bash
# test.sh [ROW]...: the limits on other kernels, with pure cgroup v2, in emulated machines. Prints one table.
# A row is KERNEL,ARCHITECTURE,USER,LAYOUT; without any, all of them run. Images and tools are made once (about 20 s per
# kernel) and kept in CAISSON_VM_CACHE (~/.cache/caisson-vm). CAISSON_VM_FILTER picks tests, as GTEST_FILTER does.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
rows=("$@")
if [ ${#rows[@]} = 0 ]; then
  for arch in amd64 arm64; do
    for kernel in 6.1 6.12; do rows+=("$kernel,$arch,root,own" "$kernel,$arch,tester,delegated"); done
  done
  rows+=(6.12,amd64,tester,login 5.10,amd64,root,refusal)
fi
results=${CAISSON_VM_RESULTS:-$source_root/build/test-results-vm}
rm -rf "$results"
mkdir -p "$results"

# stage ARCHITECTURE: the programs under test, built for it.
stage() {
  local arch=$1 build=$source_root/build into=$results/.stage-$arch
  if [ -d "$into" ]; then return; fi
  if [ -n "${CAISSON_VM_PROGRAMS:-}" ]; then # built elsewhere: caisson payload unit_tests functional_limits
    mkdir -p "$into/bin"
    cp "$CAISSON_VM_PROGRAMS"/* "$into/bin/"
    cp "$VM_SOURCE/inside.sh" "$VM_SOURCE/refusal.py" "$into/"
    return
  fi
  if [ "$arch" != "$(dpkg --print-architecture)" ]; then
    bash "$VM_SOURCE/cross.sh" "$arch" >&2 || return 1
    build=$source_root/build-$arch
  else
    ninja -C "$build" caisson payload unit_tests functional_limits >&2 || return 1
  fi
  mkdir -p "$into/bin"
  cp "$build/caisson" "$build/tests/payloads/payload" "$build/tests/unit_tests" \
    "$build/tests/functional/functional_limits" "$into/bin/"
  cp "$VM_SOURCE/inside.sh" "$VM_SOURCE/refusal.py" "$into/"
}

for row in "${rows[@]}"; do
  IFS=, read -r kernel arch user layout <<<"$row"
  mkdir -p "$results/$row"
  if ! bash "$VM_SOURCE/build.sh" "$arch" "$kernel" || ! stage "$arch"; then
    log "$row: could not be prepared"
    continue
  fi
  log "$row"
  bash "$VM_SOURCE/run.sh" -a "$arch" -k "$kernel" -u "$user" -l "$layout" -d "$results/.stage-$arch" -o "$results/$row" \
    -t "${CAISSON_VM_SECONDS:-900}" "bash /job/inside.sh $layout '${CAISSON_VM_FILTER:-*}'" >"$results/$row.log" 2>&1 || :
done
exec python3 "$VM_SOURCE/table.py" "$results"
