#!/bin/sh
# booted_user.sh: runs the README's first commands and `caisson verify` as an ordinary user of the booted machine.
set -eu
mkdir "$HOME/project"
cd "$HOME/project"
caisson version
caisson doctor
caisson run -- sh -c 'id; hostname; ls /'
[ "$(caisson run -- id -u)" = 1000 ]
caisson run -- sh -c 'touch new'
[ ! -e new ]
id=$(caisson session create)
# A session's command must start within 3 s, which an emulated machine on a busy host may miss.
in_session() {
  for _ in 1 2 3 4 5; do
    if caisson session exec "$id" -- "$@" 2>/tmp/errors; then return 0; fi
    cat /tmp/errors
    grep -q 'did not start its program in time' /tmp/errors || return 1
  done
  return 1
}
in_session sh -c 'echo 1 > new'
caisson session checkpoint "$id" good
in_session rm new
caisson session restore "$id" good
[ "$(caisson session read "$id" new)" = 1 ]
caisson session commit "$id" --dry-run
caisson session destroy "$id"
caisson verify
