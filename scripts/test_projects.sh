#!/bin/sh
# test_projects.sh [NAME...]: builds real projects under the profile `dev`. If root runs it, the tests also run as the
# ordinary user `caisson-tester`. Projects whose tools cannot be installed are skipped.
set -eu
. "$(dirname -- "$0")/lib.sh"
dir=$root/build
sh "$root/scripts/build.sh" release
CAISSON_LOG_FILE=$dir/build.log sh "$root/scripts/install_dependencies.sh" --optional projects
status=0
python3 "$root/tests/projects/projects.py" "$dir/caisson" "$@" || status=$?
[ "$(id -u)" = 0 ] || exit "$status"

user=caisson-tester
if ! id -u "$user" >/dev/null 2>&1; then useradd -m -s /bin/sh "$user"; fi
stage=$(mktemp -d /tmp/caisson-projects-XXXXXXXX)
trap 'rm -f "$stage/caisson" "$stage/projects.py"; rmdir "$stage"' EXIT
chmod 755 "$stage"
install -m 755 "$dir/caisson" "$root/tests/projects/projects.py" "$stage"
say "running the tests as $user"
cd /
setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --inh-caps=-all -- \
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$(getent passwd "$user" | cut -d: -f6)" LANG=C.UTF-8 \
  ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS="$NODE_EXTRA_CA_CERTS"} \
  python3 "$stage/projects.py" "$stage/caisson" "$@" || status=$?
exit "$status"
