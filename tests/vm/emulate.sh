#!/bin/bash
# emulate.sh COMMAND...: used with toolchain.sh; runs a command that can start programs of the architecture CAISSON_CROSS.
# The emulator is registered in a user namespace, not on the machine (Linux 6.7), unless the machine already has one.
set -euo pipefail
case $CAISSON_CROSS in
  amd64) machine=x86_64 code='\x3e' ;;
  arm64) machine=aarch64 code='\xb7' ;;
esac
formats=/proc/sys/fs/binfmt_misc
for name in "$formats/qemu-$machine" "$formats/caisson-$machine"; do
  if [ -e "$name" ]; then exec "$@"; fi
done
# Matches 64-bit little-endian ELF programs. P: keeps argv[0], from which caisson finds its files. F: also works in a
# chroot.
format=":caisson-$machine:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00$code\x00:"
format+="\xff\xff\xff\xff\xff\xfe\xfe\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$CAISSON_EMULATOR:PF"
inside='mount -t binfmt_misc none "$0" && printf %s "$1" >"$0/register" || {
  echo "caisson: cannot register an emulator: that needs Linux 6.7 or the package qemu-user-static" >&2
  exit 125
}
shift
exec "$@" 8>&-'
if [ "$(id -u)" != 0 ]; then
  exec unshare --user --map-root-user --map-auto --mount sh -c "$inside" "$formats" "$format" "$@"
fi
# unshare cannot map all users for root, which has no subordinate ids: map them from outside and enter the namespace.
coproc holder { exec unshare --user --mount sh -c 'echo ready; read -r _'; }
read -r _ <&"${holder[0]}"
for map in uid_map gid_map; do echo "0 0 65536" >"/proc/$holder_PID/$map"; done
exec 8>"/dev/fd/${holder[1]}" # reopened, because exec closes a copy; the holder runs until it is closed
exec nsenter --target "$holder_PID" --user --mount --wd="$PWD" sh -c "$inside" "$formats" "$format" "$@"
