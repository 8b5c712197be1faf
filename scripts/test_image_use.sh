#!/bin/sh
# test_image_use.sh [CHECK...]: runs package managers in sessions with a Debian root. If root runs it, the tests also
# run as the ordinary user `caisson-tester`. The archive of the Debian root is cached in build/image-use.
set -eu
. "$(dirname -- "$0")/lib.sh"
dir=$root/build
sh "$root/scripts/build.sh" release
status=0
python3 "$root/tests/image_use/image_use.py" "$dir/caisson" "$dir/image-use" "$@" || status=$?
[ "$(id -u)" = 0 ] || exit "$status"

user=caisson-tester
if ! id -u "$user" >/dev/null 2>&1; then useradd -m -s /bin/sh "$user"; fi
stage=$(mktemp -d /tmp/caisson-image-use-XXXXXXXX)
trap 'rm -f "$stage/caisson" "$stage/image_use.py" "$stage/debian-minbase.tar"; rmdir "$stage"' EXIT
chmod 755 "$stage"
install -m 755 "$dir/caisson" "$root/tests/image_use/image_use.py" "$stage"
[ ! -e "$dir/image-use/debian-minbase.tar" ] || install -m 644 "$dir/image-use/debian-minbase.tar" "$stage"
say "running the tests as $user"
cd /
setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups --inh-caps=-all -- \
  env -i PATH=/usr/local/bin:/usr/bin:/bin USER="$user" HOME="$(getent passwd "$user" | cut -d: -f6)" LANG=C.UTF-8 \
  python3 "$stage/image_use.py" "$stage/caisson" "$stage" "$@" || status=$?
exit "$status"
