#!/bin/sh
# build.sh [--once] [--tests] [--bench] PRESET [TARGET...]: installs missing packages, configures, builds.
# --once: do nothing if another process built the first TARGET while this one waited for the lock.
# When tests/vm/toolchain.sh runs this script, it builds for another architecture, in BUILD-DIRECTORY-ARCHITECTURE.
# Prints progress to standard error and writes the whole log to <build directory>/build.log.
set -eu
. "$(dirname -- "$0")/lib.sh"

once=
tests=
bench=
while :; do
  case ${1:-} in
    --once) once=1 ;;
    --tests) tests=1 ;;
    --bench) bench=1 ;;
    *) break ;;
  esac
  shift
done
preset=$1
shift
case $preset in release) dir=$root/build ;; *) dir=$root/build-$preset ;; esac
dir=$dir${CAISSON_CROSS:+-$CAISSON_CROSS}

own_build_directory "$dir"
lock_build_directory "$dir"
if [ -n "$once" ] && [ -z "${CAISSON_REBUILD:-}" ] && [ -x "$dir/$1" ]; then exit 0; fi

log=$dir/build.log
: >"$log"

sections=build
image=
case " $* " in *" caisson-image "*) image=1 ;; esac
if [ -n "$image$tests" ]; then sections="$sections image"; fi
if [ -n "$tests" ]; then sections="$sections test"; fi
if [ -n "$bench" ]; then sections="$sections bench"; fi
case $preset in fuzz* | clang) sections="$sections fuzz" ;; esac
# shellcheck disable=SC2086
CAISSON_LOG_FILE=$log sh "$root/scripts/install_dependencies.sh" $sections

cached() { [ -f "$dir/CMakeCache.txt" ] && grep -qxF "$1" "$dir/CMakeCache.txt"; }

# A build directory that was configured for another clone cannot be used.
if [ -f "$dir/CMakeCache.txt" ] && ! cached "CMAKE_HOME_DIRECTORY:INTERNAL=$root"; then
  rm -f "$dir/CMakeCache.txt" "$dir/build.ninja"
fi
if [ -z "$tests" ] && cached CAISSON_TESTS:BOOL=ON; then tests=1; fi
if [ -z "$bench" ] && cached CAISSON_BENCH:BOOL=ON; then bench=1; fi
want_tests=OFF
want_bench=OFF
if [ -n "$tests" ]; then want_tests=ON; fi
if [ -n "$bench" ]; then want_bench=ON; fi

# Reconfigure if the build was configured before the libraries of caisson-image were installed.
if [ -n "$image" ] && [ -f "$dir/build.ninja" ] && ! grep -q caisson-image "$dir/build.ninja"; then rm "$dir/build.ninja"; fi
if [ ! -f "$dir/build.ninja" ] || ! cached "CAISSON_TESTS:BOOL=$want_tests" || ! cached "CAISSON_BENCH:BOOL=$want_bench"; then
  say "configuring ${dir##*/} ($preset)"
  if ! (cd "$root" && cmake --preset "$preset" -B "$dir" -DCAISSON_TESTS=$want_tests -DCAISSON_BENCH=$want_bench) >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "cmake failed (log: $log)"
  fi
fi

# Shows Ninja's status lines as one updating line on a terminal, and otherwise as one line per 10 %. Other lines are
# printed unchanged.
show_progress() {
  next=0
  moving=
  if [ -t 2 ]; then moving=1; fi
  while IFS= read -r line; do
    printf '%s\n' "$line" >&3
    case $line in
      '['*' '*'%] '*)
        percent=${line#* }
        percent=${percent%%%*}
        percent=${percent##* }
        if [ -n "$moving" ]; then
          printf '\r\033[K%.100s' "$line" >&2
        elif [ "$percent" -ge "$next" ]; then
          printf '%s\n' "$line" >&2
          next=$((percent / 10 * 10 + 10))
        fi
        ;;
      'ninja: no work to do.' | 'ninja: Entering'*) ;;
      *) printf '%s\n' "$line" >&2 ;;
    esac
  done
  if [ -n "$moving" ]; then printf '\r\033[K' >&2; fi
}

jobs=${CAISSON_JOBS:-$(nproc)}
rm -f "$dir/.failed"
{
  NINJA_STATUS='[%f/%t %p] ' ninja -C "$dir" -j "$jobs" "$@" 2>&1 </dev/null || : >"$dir/.failed"
} | show_progress 3>>"$log"
if [ -e "$dir/.failed" ]; then
  rm -f "$dir/.failed"
  die "the build failed (log: $log)"
fi
