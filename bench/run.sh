#!/bin/sh
# Runs the benchmark as an ordinary user: that is whom the targets are about.
#
#   bench/run.sh BUILD_DIR [--also-root] [options of bench]
#
# Started by root it becomes the user `caisson-bench` (made if missing) and, with --also-root, measures the launch
# table as root too. BUILD_DIR holds caisson and bench/{audit_events,bench,floor,repeat,syscall_loop}.
set -eu

user=caisson-bench
build=${1:?usage: run.sh BUILD_DIR [--also-root] [options of bench]}
shift
build=$(cd "$build" && pwd)
tools=$build/bench
[ -x "$tools/bench" ] || tools=$build
[ -x "$tools/bench" ] || { echo "run.sh: no bench program in $build or $build/bench" >&2; exit 1; }

also_root=no
if [ "${1:-}" = --also-root ]; then also_root=yes; shift; fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"

# Copies, of the yardstick too: the tree may lie where another user cannot go (/root), and what a linker just wrote the
# kernel keeps in single pages, what was copied in large ones, as after an installation.
stage_file() { if [ -x "$1" ]; then cp "$1" "$stage/"; fi; }
for name in audit_events bench floor repeat syscall_loop; do stage_file "$tools/$name"; done
tools=$stage
caisson=$build/caisson
if [ -x "$caisson" ]; then
  stage_file "$caisson"
  caisson=$stage/caisson
fi

if [ "$(id -u)" -ne 0 ]; then
  "$tools/bench" --caisson "$caisson" "$@"
  exit
fi

id "$user" >/dev/null 2>&1 || useradd -m "$user"
# The result file is the caller's: the ordinary user writes a staged one.
json=
previous=
for argument in "$@"; do
  if [ "$previous" = --json ]; then json=$argument; fi
  previous=$argument
done
home=$(getent passwd "$user" | cut -d: -f6)
(cd "$home" && runuser -u "$user" -- env TMPDIR=/tmp "$tools/bench" --caisson "$caisson" "$@" \
  ${json:+--json "$home/bench.json"})
if [ -n "$json" ]; then mv "$home/bench.json" "$json"; fi

if [ "$also_root" = yes ]; then
  printf '\n'
  "$tools/bench" --caisson "$caisson" --only launch
fi
