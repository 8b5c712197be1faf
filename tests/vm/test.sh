#!/bin/bash
# test.sh SUITE [ROW]...: runs a suite on other kernels, with pure cgroup v2, in emulated machines. Prints a table.
#   SUITE: limits | security | sessions | rungs
#   ROW: KERNEL,ARCHITECTURE,USER,LAYOUT. Default: all rows for the limits; for the rungs the newest kernel, as an
#   ordinary user; otherwise Linux 6.12 on the other architecture, as root and as an ordinary user.
#   rungs: the security suite with the rung proc_subset, which needs Linux 7.2; compared with
#   tests/security/rungs/expected.toml.
# Images and tools are built once (about 20 s per kernel) and cached in CAISSON_VM_CACHE (~/.cache/caisson-vm).
# CAISSON_VM_FILTER selects tests, as GTEST_FILTER does; CAISSON_VM_SECONDS is the timeout of each row.
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
  rungs) programs=(security_tests) seconds=7200 ;;
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
elif [ ${#rows[@]} = 0 ] && [ "$suite" = rungs ]; then
  rows=("bpo,$(dpkg --print-architecture),tester,delegated")
elif [ ${#rows[@]} = 0 ]; then
  case $(dpkg --print-architecture) in amd64) other=arm64 ;; *) other=amd64 ;; esac
  rows=("6.12,$other,tester,delegated" "6.12,$other,root,own")
fi
results=${CAISSON_VM_RESULTS:-$source_root/build/test-results-vm-$suite}
rm -rf "$results"
mkdir -p "$results"

# stage ARCHITECTURE: builds the tested programs for it.
stage() {
  local arch=$1 build=$source_root/build into=$results/.stage-$arch targets=(caisson payload "${programs[@]}") target
  if [ -d "$into" ]; then return; fi
  if [ "$suite" = security ]; then targets+=(caisson-weakened); fi
  if [ "$suite" = sessions ]; then targets+=(caisson-mcp); fi
  if [ "$suite" = rungs ]; then targets+=(caisson-weakened without); fi
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
  if [ "$suite" = rungs ]; then
    cp "$source_root/tests/security/rungs/in_rung.sh" "$into/"
    echo proc_subset >"$into/rung"
  fi
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
if [ "$suite" = rungs ]; then
  status=0
  for row in "${rows[@]}"; do
    python3 "$source_root/tests/security/rungs/run.py" --results "proc_subset=$results/$row/security_tests.xml" || status=1
  done
  exit $status
fi
exec python3 "$VM_SOURCE/table.py" "$results"
