#!/bin/sh
# Runs the benchmark as an ordinary user, because the targets apply to ordinary users.
#
#   bench/run.sh BUILD_DIR [--everything] [--also-root] [options of bench]
#
# If root starts it, it runs as the user `caisson-bench` (created if missing); with --also-root it measures the launch
# table as root too. --everything adds the tables of sessions, MCP, the egress and (root) limits.
set -eu

user=caisson-bench
build=${1:?usage: run.sh BUILD_DIR [--everything] [--also-root] [options of bench]}
shift
build=$(cd "$build" && pwd)
source=$(cd -- "$(dirname -- "$0")/.." && pwd)
tools=$build/bench
[ -x "$tools/bench" ] || tools=$build
[ -x "$tools/bench" ] || { echo "run.sh: no bench program in $build or $build/bench" >&2; exit 1; }

everything=no
also_root=no
while :; do
  case "${1:-}" in
    --everything) everything=yes ;;
    --also-root) also_root=yes ;;
    *) break ;;
  esac
  shift
done

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
chmod 755 "$stage"

# Copy all programs: the tree may be inaccessible to another user (/root), and the page cache holds a file that the
# linker just wrote in single pages, but a copied file in large folios, as after an installation.
stage_file() { if [ -x "$1" ]; then cp "$1" "$stage/"; fi; }
for name in audit_events bench egress_tool floor mcp read_tree repeat sessions syscall_loop; do
  stage_file "$tools/$name"
done
tools=$stage
caisson=$build/caisson
if [ -x "$caisson" ]; then
  for name in caisson caisson-broker caisson-mcp; do stage_file "$build/$name"; done
  caisson=$stage/caisson
fi

home=$HOME
as_user() { "$@"; }
if [ "$(id -u)" -eq 0 ]; then
  id "$user" >/dev/null 2>&1 || useradd -m "$user"
  home=$(getent passwd "$user" | cut -d: -f6)
  as_user() { (cd "$home" && runuser -u "$user" -- env HOME="$home" TMPDIR=/tmp "$@"); }
fi

# The ordinary user may not be able to write the caller's result file, so it writes a copy first.
json=
previous=
for argument in "$@"; do
  if [ "$previous" = --json ]; then json=$argument; fi
  previous=$argument
done
staged=$home/.caisson-bench-$$.json
as_user "$tools/bench" --caisson "$caisson" "$@" ${json:+--json "$staged"}
if [ -n "$json" ]; then mv "$staged" "$json"; fi

if [ "$everything" = yes ]; then
  if [ -x "$tools/sessions" ]; then
    printf '\nSessions\n'
    as_user "$tools/sessions" --caisson "$caisson" --floor "$tools/floor"
  fi
  printf '\nMCP: small commands per second over one stdio connection\n'
  as_user "$tools/mcp" --caisson "$caisson"
  printf '\nEgress\n'
  mkdir -p "$stage/source/bench" "$stage/source/tests/network"
  cp "$source/bench/egress.sh" "$stage/source/bench/"
  cp "$source/tests/network/world.sh" "$source/tests/network/internet.py" "$stage/source/tests/network/"
  as_user sh "$stage/source/bench/egress.sh" "$caisson" "$tools/egress_tool"
fi

if [ "$(id -u)" -ne 0 ]; then exit; fi
if [ "$everything" = yes ]; then
  printf '\nLimits, as root\n'
  bash "$source/bench/limits.sh" "$stage"
fi
if [ "$also_root" = yes ]; then
  printf '\n'
  "$tools/bench" --caisson "$caisson" --only launch
fi
