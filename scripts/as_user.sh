#!/bin/sh
# as_user.sh TEST-PROGRAM RESULT.xml [ARGUMENT...]: as root, runs a GoogleTest program as the ordinary user `caisson-tester`.
# The program works in a directory of that user, and root copies the result back. The files that the tests left are
# removed as that user, not as root, so that a planted link does no harm.
set -eu
program=$1
result=$2
shift 2
name=$(basename "$program")
user=caisson-tester

# Two entries may start at once; only one of them creates the user.
exec 8<"$0"
flock 8
if ! id -u "$user" >/dev/null 2>&1; then useradd -m -s /bin/sh "$user"; fi
flock -u 8
exec 8<&-

home=$(getent passwd "$user" | cut -d: -f6)
stage=$(mktemp -d /tmp/caisson-user-XXXXXXXX)
chmod 755 "$stage"
mkdir "$stage/work" "$stage/bin"
chown "$user:" "$stage/work"

drop() {
  setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --inh-caps=-all -- "$@"
}

clean_up() {
  drop rm -rf --one-file-system "$stage/work" 2>/dev/null || :
  rm -f "$stage/bin/$name" "$stage/bin/caisson" "$stage/bin/payload" "$stage/bin/caisson-weakened" "$stage/bin/caisson-image" \
    "$stage/bin/caisson-unpack"
  rm -rf "$stage/source"  # owned by root: tests could not write there
  rmdir "$stage/work" "$stage/bin" "$stage" 2>/dev/null || :
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

# A clone below /root, for example, is not accessible to the user: copy what the tests execute.
reachable() {
  if [ ! -e "$1" ] || drop test -x "$1"; then
    printf '%s' "$1"
  else
    install -m 755 "$1" "$stage/bin/$2"
    printf '%s' "$stage/bin/$2"
  fi
}
program=$(reachable "$program" "$name")
caisson=$(reachable "${CAISSON_BIN:-}" caisson)
if [ "$caisson" = "$stage/bin/caisson" ]; then
  for other in caisson-image caisson-unpack; do
    if [ -x "${CAISSON_BIN%/*}/$other" ]; then install -m 755 "${CAISSON_BIN%/*}/$other" "$stage/bin/$other"; fi
  done
fi
payload=$(reachable "${CAISSON_PAYLOAD:-}" payload)
weakened=$(reachable "${CAISSON_WEAKENED:-}" caisson-weakened)
source=${CAISSON_SOURCE_DIR:-}
if [ -n "$source" ] && ! drop test -r "$source/src"; then
  mkdir "$stage/source"
  cp -R "$source/src" "$source/tests" "$source/docs" "$source/include" "$source/README.md" "$stage/source/"
  chmod -R a+rX "$stage/source"
  source=$stage/source
fi

# The settings of the tests that are set: env takes them before the program.
set -- "$program" "--gtest_output=xml:$stage/work/result.xml" "$@"
for setting in CAISSON_TEST_SECONDS CAISSON_TEST_SLOWNESS CAISSON_TEST_CASES CAISSON_HISTORIES CAISSON_FIRST_HISTORY; do
  eval "value=\${$setting:-}"
  if [ -n "$value" ]; then set -- "$setting=$value" "$@"; fi
done

cd "$stage/work"
status=0
drop env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" USER="$user" LOGNAME="$user" LANG=C.UTF-8 TMPDIR="$stage/work" \
  CAISSON_BIN="$caisson" CAISSON_PAYLOAD="$payload" CAISSON_WEAKENED="$weakened" CAISSON_SOURCE_DIR="$source" \
  CAISSON_MUST_RUN="${CAISSON_MUST_RUN:-}" ASAN_OPTIONS="${ASAN_OPTIONS:-}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-}" \
  TSAN_OPTIONS="${TSAN_OPTIONS:-}" GTEST_FILTER="${GTEST_FILTER:-*}" \
  "$@" || status=$?

if [ -f "$stage/work/result.xml" ] && [ ! -L "$stage/work/result.xml" ]; then
  drop cat "$stage/work/result.xml" >"$result"
fi
exit "$status"
