#!/bin/sh
# install_dependencies.sh [--optional] SECTION...: installs the missing packages of these sections of dependencies.txt.
# Uses sudo unless it runs as root. If it cannot become root, it prints the command for an administrator and exits 125
# (with --optional: prints the missing packages and exits 0). Does nothing if no package is missing.
# CAISSON_LOG_FILE receives the output of apt.
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
  say "dpkg not found; assuming that these packages are installed: $(printf '%s' "$lines" | tr '\n' ' ')"
  exit 0
fi

# shellcheck disable=SC2046  # package names contain no spaces
present=" $(dpkg-query -W -f='${Package}=${db:Status-Status} ' $(printf '%s' "$lines" | tr '|' ' ') 2>/dev/null || :)"
missing=
for line in $lines; do
  found=
  for name in $(printf '%s' "$line" | tr '|' ' '); do
    case $present in *" $name=installed "*) found=1 ;; esac
  done
  # A newer nodejs, which is not Debian's, includes it and conflicts with the package.
  if [ "$line" = npm ] && command -v npm >/dev/null 2>&1; then found=1; fi
  if [ -z "$found" ]; then missing="$missing $line"; fi
done
[ -n "$missing" ] || exit 0

first_choices=
for line in $missing; do first_choices="$first_choices ${line%%|*}"; done

give_up() {
  admin_line="apt-get update && apt-get install -y --no-install-recommends$first_choices"
  if [ -n "$optional" ]; then
    say "$1; continuing without:$first_choices
  to install them as an administrator: $admin_line"
    exit 0
  fi
  say "$1
  ask an administrator to run this command, then try again:
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
  sudo -v 1>&2 || give_up "sudo failed"
  as_root='sudo -n'
else
  give_up "packages are missing:$first_choices; this user is not root and cannot use sudo"
fi

# Close descriptor 9, the build lock: a service that a package starts must not inherit it.
apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l LC_ALL=C apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "$@" </dev/null >>"$log" 2>&1 9>&-
}

say "updating the package lists"
apt update || say "apt-get update failed (log: $log); using the existing lists"

# The updated lists show which alternatives exist.
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
# shellcheck disable=SC2086  # package names contain no spaces
if apt install --no-install-recommends $chosen; then exit 0; fi
if [ -z "$optional" ]; then
  if [ -f "$log" ]; then tail -n 15 "$log" >&2; fi
  give_up "apt-get could not install them (log: $log)"
fi
# Install the packages one by one, so that a conflict does not prevent the others.
first_choices=
for name in $chosen; do
  apt install --no-install-recommends "$name" || first_choices="$first_choices $name"
done
if [ -n "$first_choices" ]; then give_up "apt-get could not install all of them (log: $log)"; fi
