#!/bin/sh
# image.sh: builds caisson-VERSION-image-ARCHITECTURE.tar, an image of Debian 12 and caisson for container engines, without
# an engine. The Debian root is cached in CAISSON_DIST_CACHE (default: ~/.cache/caisson-dist); remove it to get newer
# packages.
set -eu
. "$(dirname -- "$0")/lib.sh"
. "$root/packaging/dist/portable.sh"
. "$root/packaging/dist/debian_sources.sh"
command -v mmdebstrap >/dev/null 2>&1 || sh "$root/scripts/install_dependencies.sh" packages
cache=${CAISSON_DIST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caisson-dist}
base=$cache/image-base-$deb_arch-1.tar
if [ ! -e "$base" ]; then
  mkdir -p "$cache"
  say "making the Debian root of the image (mmdebstrap)"
  # A fixed time instead of the commit's, because all commits share the root.
  package_sources bookworm bookworm-updates bookworm-security |
    SOURCE_DATE_EPOCH=1700000000 mmdebstrap --quiet --format=tar --variant=minbase --include=ca-certificates \
      --architectures="$deb_arch" ${CAISSON_CROSS:+--skip=check/qemu,chroot/mount/proc,chroot/mount/sys} \
      --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
      --dpkgopt='path-include=/usr/share/doc/*/copyright' bookworm "$base.$$" - || {
    rm -f "$base.$$"
    die "mmdebstrap failed; is the Debian mirror reachable?"
  }
  mv "$base.$$" "$base"
fi
python3 -B "$root/packaging/container/build_image.py" "$base"
