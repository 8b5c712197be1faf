#!/bin/sh
# surface.sh lists      regenerates the lists in docs/syscalls.md from the source
# surface.sh measure    as root: measures all installed sandboxes and prints the rows of the table in docs/syscalls.md
set -eu
. "$(dirname -- "$0")/lib.sh"
surface=$root/build/tests/surface/surface
document=$root/docs/syscalls.md

write_lists() {
  new=$(mktemp)
  sed '/^<!-- lists:/q' "$document" >"$new"
  "$surface" lists >>"$new"
  sed -n '/^<!-- end of lists -->/,$p' "$document" >>"$new"
  cat "$new" >"$document"
  rm -f "$new"
}

# row NAME COMMAND...: measures one sandbox; a failure is reported and does not stop the script.
row() {
  name=$1
  shift
  printf '%s: ' "$name"
  "$surface" measure -- "$@" 2>&1 | tail -1
}

measure() {
  stage=$(mktemp -d)
  trap 'rm -rf --one-file-system "$stage"' EXIT
  chmod 755 "$stage"
  install -m 755 "$surface" "$stage/surface"
  row 'no sandbox' "$stage/surface" probe
  row caisson "$root/build/caisson" run -q --workspace :none --ro "$stage/surface" -- "$stage/surface" probe
  if command -v bwrap >/dev/null; then
    row bubblewrap bwrap --unshare-all --cap-drop ALL --ro-bind / / --proc /proc --dev /dev "$stage/surface" probe
  fi
  # Docker's default profile, which Debian's containers-common provides for podman. runc fails on a hybrid cgroup mount.
  if command -v podman >/dev/null && command -v runc >/dev/null; then
    for name in dev etc proc sys tmp; do mkdir -p "$stage/rootfs/$name"; done
    install -m 755 "$surface" "$stage/rootfs/surface"
    row 'podman (default profile)' unshare --mount --propagation private sh -c \
      'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh podman --root "$stage/r" --runroot "$stage/rr" \
      --tmpdir "$stage/t" --cgroup-manager cgroupfs --events-backend file --runtime runc run --rm --interactive \
      --network none --ulimit nofile=1024:4096 --ulimit nproc=1000:1000 --rootfs "$stage/rootfs" /surface probe
  fi
}

case ${1:-} in
  lists) write_lists ;;
  measure) measure ;;
  *) echo "usage: surface.sh lists | measure" >&2; exit 2 ;;
esac
