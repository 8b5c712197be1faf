#!/bin/bash
# test.sh SUITE [ROW]...: a suite on other kernels, with pure cgroup v2, in emulated machines. Prints one table.
#   SUITE: limits | security | sessions
#   ROW: KERNEL,ARCHITECTURE,USER,LAYOUT. Without any: all of them for the limits; else Linux 6.12 on the architecture
#   that this machine is not, as root and as an ordinary user.
# Images and tools are made once (about 20 s per kernel) and kept in CAISSON_VM_CACHE (~/.cache/caisson-vm).
# CAISSON_VM_FILTER picks tests, as GTEST_FILTER does; CAISSON_VM_SECONDS is the time that each row has.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
suite=$1
shift
rows=("$@")
case $suite in
  limits) programs=(unit_tests functional_limits) seconds=900 ;;
  security) programs=(security_tests security_verify) seconds=5400 ;;
  sessions) programs=(session_supervisor session_promises session_commit) seconds=5400 ;;
  *)
    log "unknown suite $suite"
    exit 2
    ;;
esac
if [ ${#rows[@]} = 0 ] && [ "$suite" = limits ]; then
  for arch in amd64 arm64; do
    for kernel in 6.1 6.12; do rows+=("$kernel,$arch,root,own" "$kernel,$arch,tester,delegated"); done
  done
  rows+=(6.12,amd64,tester,login 5.10,amd64,root,refusal)
elif [ ${#rows[@]} = 0 ]; then
  case $(dpkg --print-architecture) in amd64) other=arm64 ;; *) other=amd64 ;; esac
  rows=("6.12,$other,tester,delegated" "6.12,$other,root,own")
fi
results=${CAISSON_VM_RESULTS:-$source_root/build/test-results-vm-$suite}
rm -rf "$results"
mkdir -p "$results"

# stage ARCHITECTURE: the programs under test, built for it.
stage() {
  local arch=$1 build=$source_root/build into=$results/.stage-$arch targets=(caisson payload "${programs[@]}") target
  if [ -d "$into" ]; then return; fi
  if [ "$suite" = security ]; then targets+=(caisson-weakened); fi
  if [ -n "${CAISSON_VM_PROGRAMS:-}" ]; then # built elsewhere
    mkdir -p "$into/bin"
    cp "$CAISSON_VM_PROGRAMS"/* "$into/bin/"
  else
    if [ "$arch" != "$(dpkg --print-architecture)" ]; then
      bash "$VM_SOURCE/cross.sh" "$arch" "${targets[@]}" >&2 || return 1
      build=$source_root/build-$arch
    else
      ninja -C "$build" "${targets[@]}" >&2 || return 1
    fi
    mkdir -p "$into/bin"
    for target in "${targets[@]}"; do find "$build" -maxdepth 3 -type f -name "$target" -exec cp {} "$into/bin/" \;; done
  fi
  cp "$VM_SOURCE/inside.sh" "$VM_SOURCE/refusal.py" "$into/"
  mkdir -p "$into/tests/session"
  cp "$source_root/tests/session/commit_model.py" "$into/tests/session/"
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
    -t "${CAISSON_VM_SECONDS:-$seconds}" "bash /job/inside.sh $layout '${CAISSON_VM_FILTER:-*}' ${programs[*]}" \
    >"$results/$row.log" 2>&1 || :
done
exec python3 "$VM_SOURCE/table.py" "$results"
