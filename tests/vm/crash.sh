#!/bin/bash
# crash.sh [ROUNDS]: tests that the audit log survives a crash of its machine. In each round, a machine in which clients
# write to the log is killed at a random moment, and the log is checked in a second machine with the same disk.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
rounds=${1:-2}
arch=$(dpkg --print-architecture) kernel=6.12
work=$(mktemp -d "${TMPDIR:-/tmp}/caisson-crash.XXXXXX")
machine=
clean_up() {
  if [ -n "$machine" ]; then kill "$machine" 2>/dev/null || :; wait "$machine" 2>/dev/null || :; fi
  rm -rf "$work"
}
trap clean_up EXIT
bash "$VM_SOURCE/build.sh" "$arch" "$kernel"
programs=${CAISSON_VM_PROGRAMS:-}
if [ -z "$programs" ]; then
  ninja -C "$source_root/build" caisson payload >&2
  programs=$work/programs
  mkdir "$programs"
  cp "$source_root/build/caisson" "$source_root/build/tests/payloads/payload" "$programs"
fi
mkdir -p "$work/job/bin"
cp "$programs"/{caisson,payload} "$work/job/bin/"
cp "$VM_SOURCE"/crash_{write,read}.sh "$work/job/"
case $arch in arm64) echo 280 ;; amd64) echo 321 ;; esac >"$work/job/bpf" # the number of the system call bpf
status=0
for ((round = 1; round <= rounds; ++round)); do
  disk=$work/disk.img acknowledged=$work/acknowledged
  rm -f "$disk"
  truncate -s 512M "$disk"
  mke2fs -q -t ext4 "$disk"
  : >"$acknowledged" # the loop below may read it before the machine's shell has opened it
  bash "$VM_SOURCE/run.sh" -a "$arch" -k "$kernel" -d "$work/job" -D "$disk" -t 400 'bash /job/crash_write.sh' \
    >"$acknowledged" 2>"$work/log" &
  machine=$!
  wanted=$((10 + RANDOM % 20)) deadline=$((SECONDS + 300))
  # Some commands must be older than the three seconds that may be lost.
  enough='/^ACK/ { if (!count++) first = $2; last = $2 } END { exit !(count >= wanted && last - first > 4000) }'
  while ! awk -v wanted=$wanted "$enough" "$acknowledged" && kill -0 $machine 2>/dev/null && [ $SECONDS -lt $deadline ]; do
    sleep 0.2
  done
  sleep "0.$((RANDOM % 1000))"
  if ! kill "$machine" 2>/dev/null; then cat "$acknowledged" "$work/log" >&2; fi # run.sh kills its machine with SIGKILL
  wait "$machine" 2>/dev/null || :
  machine=
  rm -rf "$work/left"
  bash "$VM_SOURCE/run.sh" -a "$arch" -k "$kernel" -d "$work/job" -D "$disk" -o "$work/left" -t 200 'bash /job/crash_read.sh' \
    >>"$work/log" 2>&1 || { cat "$work/log" >&2; status=1; }
  printf 'round %d: ' "$round"
  python3 "$VM_SOURCE/crash_check.py" "$acknowledged" "$work/left" || { tail -5 "$acknowledged"; status=1; }
done
exit $status
