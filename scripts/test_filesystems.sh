#!/bin/bash
# test_filesystems.sh: the index of the search for secrets on file systems with coarse times (ext2, vfat), on those that
# ignore case (ext4, tmpfs, vfat), on btrfs and xfs: on this machine, if root runs it, and on two kernels in emulated
# machines. The last line says whether all passed. Debian's kernels for emulated machines have neither 9p nor virtiofs;
# such file systems have no index.
set -euo pipefail
source "$(dirname "$0")/../tests/vm/lib.sh"
root=$(cd "$(dirname "$0")/.." && pwd)
arch=$(dpkg --print-architecture)
kernels="6.12 bpo"
status=0
sh "$root/scripts/build.sh" release caisson
sh "$root/scripts/install_dependencies.sh" --optional filesystems
export CAISSON_BIN=$root/build/caisson
python3 -B "$root/tests/security/filesystems/filesystems_test.py" || [ $? = 77 ] || status=1

bash "$VM_SOURCE/build.sh" "$arch" $kernels
job=$(mktemp -d "${TMPDIR:-/tmp}/caisson-filesystems.XXXXXX")
trap 'rm -rf "$job"' EXIT
mkdir "$job/images"
cp "$CAISSON_BIN" "$root/tests/security/filesystems/filesystems_test.py" "$job/"
python3 -B "$job/filesystems_test.py" --make "$job/images"
cat >"$job/run.sh" <<'END'
modprobe -a loop vfat nls_cp437 nls_ascii btrfs xfs
export CAISSON_TEST_IMAGES=/job/images CAISSON_BIN=/job/caisson
CAISSON_MUST_RUN="$1" exec python3 -B /job/filesystems_test.py
END
for kernel in $kernels; do
  all="Ext2 Ext2InPlace Ext4Casefold Vfat Btrfs Xfs"
  if [ "$kernel" = bpo ]; then all="$all TmpfsCasefold"; fi
  bash "$VM_SOURCE/run.sh" -a "$arch" -k "$kernel" -u root -l own -d "$job" -t 1800 "sh /job/run.sh '$all'" || status=1
done
if [ $status = 0 ]; then echo "file systems: passed"; else echo "file systems: FAILED"; fi
exit $status
