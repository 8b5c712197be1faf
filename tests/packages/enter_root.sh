#!/bin/sh
# enter_root.sh DIRECTORY ROOT.tar: the first process of the namespaces that debian_root.py creates. Unpacks the root on
# a file system in a file, makes it the root directory, and runs until standard input ends.
set -eu
directory=$1
archive=$2
truncate -s 8G "$directory/disk"
mkfs.ext4 -q -O ^has_journal "$directory/disk"
root=$directory/root
mkdir "$root"
mount -o loop "$directory/disk" "$root"
rm "$directory/disk" # the disk is deleted when the namespaces end
tar -C "$root" -xf "$archive" --exclude='./dev/*'
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"; done
mknod -m 666 "$root/dev/tty" c 5 0
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for name in stdin:0 stdout:1 stderr:2; do ln -s "fd/${name#*:}" "$root/dev/${name%:*}"; done
ip link set lo up
mkdir "$root/machine"
cd "$root"
pivot_root . machine
exec chroot . /bin/sh -c 'umount -l /machine && rmdir /machine && exec python3 -c "
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that zombies are reaped
print(\"ready\", flush=True)
sys.stdin.read()"'
