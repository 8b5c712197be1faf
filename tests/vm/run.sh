#!/bin/bash
# run.sh [OPTION]... COMMAND: runs a shell command in a fresh machine and exits with its status.
#   -a amd64|arm64  -k KERNEL  -u root|tester  -l LAYOUT of the cgroups ("login": in a session's scope)
#   -r FILE: another root disk    -A ARGUMENTS: added to the kernel's command line
#   -d DIRECTORY: copied to /job    -D FILE: a third, persistent disk    -o DIRECTORY: receives the files of /job/out
#   -t SECONDS
# Exit status 124: timeout; 125: the machine did not boot or did not report.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
arch=amd64 kernel=6.12 user=root layout= limit=300 out= directory= disk= arguments= root=
while getopts a:k:u:l:A:d:D:o:r:t: option; do
  case $option in
    a) arch=$OPTARG ;; k) kernel=$OPTARG ;; u) user=$OPTARG ;; l) layout=$OPTARG ;; A) arguments=$OPTARG ;;
    d) directory=$OPTARG ;; D) disk=$OPTARG ;; o) out=$OPTARG ;; r) root=$OPTARG ;; t) limit=$OPTARG ;; *) exit 125 ;;
  esac
done
shift $((OPTIND - 1))
images=$VM_HOME/images/$arch
work=$(mktemp -d "${TMPDIR:-/tmp}/caisson-vm.XXXXXX")
machine= tail=
clean_up() {
  if [ -n "$machine" ]; then kill -9 "$machine" 2>/dev/null || :; fi
  if [ -n "$tail" ]; then kill "$tail" 2>/dev/null || :; fi
  rm -rf "$work"
}
trap clean_up EXIT
mkdir "$work/job"
if [ -n "$directory" ]; then cp -a "$directory/." "$work/job/"; fi
printf '%s\n' "$1" >"$work/job/cmd"
truncate -s "$(($(du -sm "$work/job" | cut -f1) * 12 / 10 + 3072))M" "$work/job.img"
mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1,root_owner=0:0 -m 0 -d "$work/job" "$work/job.img"
case $arch in
  arm64) program=qemu-system-aarch64 hardware=(-M virt,gic-version=3 -cpu neoverse-n1) console=ttyAMA0 ;;
  amd64) program=qemu-system-x86_64 hardware=(-M q35 -cpu Nehalem) console=ttyS0 ;;
esac
qemu=$VM_HOME/tools/qemu
libraries=$qemu/usr/lib/$(uname -m)-linux-gnu
drives=()
# Uses the host's page cache, so that data that the machine has written survives the machine.
if [ -n "$disk" ]; then drives=(-drive "file=$disk,format=raw,if=none,id=d,cache=writeback" -device virtio-blk-pci,drive=d); fi
: >"$work/out" >"$work/ctl" >"$work/res"
"$libraries"/ld-linux-*.so.[12] --library-path "$libraries" "$qemu/usr/bin/$program" \
  -L "$qemu/usr/share/qemu" -L "$qemu/usr/share/seabios" -L "$qemu/usr/lib/ipxe/qemu" \
  "${hardware[@]}" -accel tcg,thread=multi,tb-size=512 -smp 2 -m 2048 -nodefaults -display none -no-reboot -no-user-config \
  -kernel "$images/$kernel/vmlinuz" -initrd "$images/$kernel/initrd" \
  -append "console=$console panic=-1 loglevel=4 mitigations=off no_timer_check random.trust_cpu=on audit=0 nokaslr rcupdate.rcu_expedited=1 cgroup_no_v1=all caisson.user=$user caisson.layout=$layout $arguments" \
  -serial "file:$work/console" -device virtio-rng-pci \
  -drive "file=${root:-$images/rootfs.ext4},format=raw,if=none,id=r,snapshot=on,cache=unsafe" -device virtio-blk-pci,drive=r \
  -drive "file=$work/job.img,format=raw,if=none,id=j,cache=unsafe" -device virtio-blk-pci,drive=j \
  "${drives[@]}" \
  -device virtio-serial-pci -chardev "file,id=o,path=$work/out" -device virtserialport,chardev=o,name=caisson.out \
  -chardev "file,id=c,path=$work/ctl" -device virtserialport,chardev=c,name=caisson.ctl \
  -chardev "file,id=s,path=$work/res" -device virtserialport,chardev=s,name=caisson.res \
  </dev/null >"$work/qemu.log" 2>&1 &
machine=$!
tail -n +1 -f --pid=$machine -s 0.5 "$work/out" 2>/dev/null &
tail=$!
while kill -0 $machine 2>/dev/null; do
  if [ "$SECONDS" -gt "$limit" ]; then
    log "time limit of $limit s"
    exit 124
  fi
  sleep 0.3
done
wait $machine || cat "$work/qemu.log" >&2
machine=
wait $tail 2>/dev/null || :
tail=
status=$(sed -n 's/^STATUS=\([0-9]*\).*/\1/p' "$work/ctl")
grep '^LEFT' "$work/ctl" >&2 || :
if [ -n "$out" ] && [ -s "$work/res" ]; then
  mkdir -p "$out"
  tar -C "$out" -xf "$work/res" --no-same-owner
fi
if [ -z "$status" ]; then
  tail -5 "$work/console" >&2
  exit 125
fi
exit "$status"
