# Helpers of the build scripts; sourced, POSIX sh. Nothing here writes to standard output:
# `./caisson run` may be building on behalf of a pipeline that reads it.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)

say() { printf 'caisson: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 125
}

# Prints the packages of the named sections of dependencies.txt, one line each, with alternatives.
packages_of() {
  for wanted in "$@"; do
    section=
    while read -r line; do
      case $line in
        '' | '#'*) ;;
        '['*']') section=${line#?}; section=${section%?} ;;
        *) if [ "$section" = "$wanted" ]; then printf '%s\n' "$line"; fi ;;
      esac
    done <"$root/scripts/dependencies.txt"
  done
}

# run_for ARCHITECTURE COMMAND...: becomes a command that can build and start programs of that architecture (amd64, arm64).
run_for() {
  arch=$1
  shift
  if [ "$arch" = "$(dpkg --print-architecture)" ]; then exec "$@"; fi
  exec bash "$root/tests/vm/toolchain.sh" "$arch" bash "$root/tests/vm/emulate.sh" "$@"
}

# Prepares directory $1 for a build, or reports whose it is.
own_build_directory() {
  if [ ! -d "$1" ] && ! mkdir -p "$1" 2>/dev/null; then
    die "can't create $1: the clone belongs to $(stat -c %U "$root") and this is $(id -un).
  try: ask its owner to run make there once, or clone it again as yourself"
  fi
  for file in "$1" "$1/.lock" "$1/build.log" "$1/build.ninja"; do
    if [ -e "$file" ] && [ ! -w "$file" ]; then
      die "can't write to $file: it belongs to $(stat -c %U "$file") and this is $(id -un).
  try: have $(stat -c %U "$file") run make, or clone the repository again as yourself"
    fi
  done
}

# One build at a time per directory: a second caller waits and then finds the work done. The lock is on descriptor 9,
# which the compilers inherit: it outlives a killed script until they exit.
lock_build_directory() {
  command -v flock >/dev/null 2>&1 || return 0
  exec 9>"$1/.lock" || die "can't open $1/.lock"
  if ! flock -n 9; then
    say "another build is running in $1; waiting for it"
    flock 9
  fi
}
