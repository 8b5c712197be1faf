#!/bin/sh
# install_dependencies.sh [--optional] SECTION...: installs what is missing of those sections of dependencies.txt.
# As root directly, otherwise through sudo; without either it prints the line for an administrator and exits 125
# (with --optional: says what will be skipped and exits 0). Does nothing when nothing is missing.
# CAISSON_LOG_FILE receives apt's own output.
set -eu
. "$(dirname -- "$0")/lib.sh"
log=${CAISSON_LOG_FILE:-/dev/null}
optional=
if [ "${1:-}" = --optional ]; then
  optional=1
  shift
fi

lines=$(packages_of "$@" | tr -d ' ' | sort -u)
if ! command -v dpkg-query >/dev/null 2>&1; then
  say "no dpkg here; taking for granted that these are installed: $(printf '%s' "$lines" | tr '\n' ' ')"
  exit 0
fi

# shellcheck disable=SC2046  # package names hold no spaces
present=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' $(printf '%s' "$lines" | tr '|' ' ') 2>/dev/null || :)"
missing=
for line in $lines; do
  found=
  for name in $(printf '%s' "$line" | tr '|' ' '); do
    case $present in *" $name=installed "*) found=1 ;; esac
  done
  if [ -z "$found" ]; then missing="$missing $line"; fi
done
[ -n "$missing" ] || exit 0

first_choices=
for line in $missing; do first_choices="$first_choices ${line%%|*}"; done

give_up() {
  admin_line="apt-get update && apt-get install -y --no-install-recommends$first_choices"
  if [ -n "$optional" ]; then
    say "$1; going on without:$first_choices
  as an administrator: $admin_line"
    exit 0
  fi
  say "$1
  hand this line to an administrator, then try again:
    $admin_line"
  exit 125
}

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  as_root='sudo -n'
elif command -v sudo >/dev/null 2>&1 && [ -t 2 ] && (: </dev/tty) 2>/dev/null; then
  say "packages are missing:$first_choices
  sudo may ask for your password to install them"
  sudo -v 1>&2 || give_up "sudo refused"
  as_root='sudo -n'
else
  give_up "packages are missing:$first_choices; this user is neither root nor able to use sudo here"
fi

# Descriptor 9 holds the build lock: a service that a package starts must not inherit it.
apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l LC_ALL=C apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "$@" </dev/null >>"$log" 2>&1 9>&-
}

say "reading the package lists"
apt update || say "apt-get update failed (log: $log); trying with the lists that are here"

# Only now are package lists available to find out which alternative exists.
chosen=
for line in $missing; do
  pick=${line%%|*}
  for name in $(printf '%s' "$line" | tr '|' ' '); do
    if apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
      pick=$name
      break
    fi
  done
  chosen="$chosen $pick"
done

say "installing:$chosen"
# shellcheck disable=SC2086  # package names hold no spaces
if apt install --no-install-recommends $chosen; then exit 0; fi
if [ -z "$optional" ]; then
  if [ -f "$log" ]; then tail -n 15 "$log" >&2; fi
  give_up "apt-get could not install them (log: $log)"
fi
# One that conflicts with a package of another origin (a newer nodejs brings its own npm) must not keep out the rest.
first_choices=
for name in $chosen; do
  apt install --no-install-recommends "$name" || first_choices="$first_choices $name"
done
if [ -n "$first_choices" ]; then give_up "apt-get could not install all of them (log: $log)"; fi
