# Helper functions of the build scripts; to be sourced; POSIX sh. They do not write messages to standard output, because
# `./caisson run` may start a build in a pipeline.

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

# run_for ARCHITECTURE COMMAND...: executes COMMAND so that it can build and run programs for that architecture (amd64,
# arm64).
run_for() {
  arch=$1
  shift
  if [ "$arch" = "$(dpkg --print-architecture)" ]; then exec "$@"; fi
  exec bash "$root/tests/vm/toolchain.sh" "$arch" bash "$root/tests/vm/emulate.sh" "$@"
}

# Creates build directory $1, or reports the owner if it is not writable.
own_build_directory() {
  if [ ! -d "$1" ] && ! mkdir -p "$1" 2>/dev/null; then
    die "can't create $1: the clone belongs to $(stat -c %U "$root"), and you are $(id -un)
  try: ask the owner to run make once, or clone the repository again as $(id -un)"
  fi
  for file in "$1" "$1/.lock" "$1/build.log" "$1/build.ninja"; do
    if [ -e "$file" ] && [ ! -w "$file" ]; then
      die "can't write to $file: it belongs to $(stat -c %U "$file"), and you are $(id -un)
  try: ask $(stat -c %U "$file") to run make, or clone the repository again as $(id -un)"
    fi
  done
}

# Allows one build at a time per directory; a second caller waits. The lock is on descriptor 9, which the compilers
# inherit: if the script is killed, the lock is held until they exit.
lock_build_directory() {
  command -v flock >/dev/null 2>&1 || return 0
  exec 9>"$1/.lock" || die "can't open $1/.lock"
  if ! flock -n 9; then
    say "another build is running in $1; waiting for it"
    flock 9
  fi
}
