#!/bin/bash
# build.sh ARCHITECTURE KERNEL...: builds images of small machines. ARCHITECTURE: amd64 | arm64. KERNEL: 5.10 | 6.1 | 6.12 |
# bpo (the newest of Debian's backports).
# A step is skipped if its result exists. Needs apt-get, dpkg-deb, tar, mke2fs, python3; installs nothing.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
arch=$1
shift
kernels=("$@")
host_arch=$(dpkg --print-architecture)
mkdir -p "$VM_HOME"
cd "$VM_HOME"

# Tools of this machine's architecture: qemu of Debian 13, started with its own loader, and tools for an initramfs.
if [ ! -e tools/ok ]; then
  log "tools: qemu"
  rm -rf tools
  mkdir -p tools/qemu tools/host
  fetch_closure trixie "$host_arch" "$CACHE/debs-qemu10" qemu-system-arm qemu-system-x86 ipxe-qemu
  unpack tools/qemu "$CACHE"/debs-qemu10/*.deb
  rm -rf tools/qemu/usr/share/{doc,man,locale,icons}
  mkdir -p "$CACHE/debs-host"
  (cd "$CACHE/debs-host" && papt bookworm "$host_arch" -qq download kmod libkmod2 cpio)
  unpack tools/host "$CACHE"/debs-host/*.deb
  touch tools/ok
fi
tools=$VM_HOME/tools/host
ln -sf "$tools/bin/kmod" "$tools/depmod" # kmod selects its command by argv[0]
ln -sf "$tools/bin/kmod" "$tools/modprobe"
kernel_tool() {
  local name=$1
  shift
  LD_LIBRARY_PATH="$tools/usr/lib/$(uname -m)-linux-gnu:$tools/lib/$(uname -m)-linux-gnu" "$tools/$name" "$@"
}

images=$VM_HOME/images/$arch
mkdir -p "$images"

packages="base-files base-passwd bash dash coreutils util-linux mount procps kmod iproute2 libc-bin passwd login libstdc++6
  sed grep mawk findutils tar gzip hostname python3 busybox-static diffutils debianutils e2fsprogs uidmap perl-base git"
if [ ! -e "$images/rootfs.ext4" ] || [ "$(cat "$images/packages" 2>/dev/null)" != "$packages" ]; then
  log "root $arch"
  rm -rf "$CACHE/debs-root-$arch"
  # shellcheck disable=SC2086
  fetch_closure bookworm "$arch" "$CACHE/debs-root-$arch" $packages
  root=$CACHE/root-$arch
  rm -rf "$root"
  mkdir -p "$root"
  merged_usr "$root" bin sbin lib
  if [ "$arch" = amd64 ]; then merged_usr "$root" lib64; fi
  unpack "$root" "$CACHE/debs-root-$arch"/*.deb
  cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
  cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
  echo 'tester:x:1000:1000:tester:/home/tester:/bin/bash' >>"$root/etc/passwd"
  echo 'tester:x:1000:' >>"$root/etc/group"
  for list in subuid subgid; do echo 'tester:100000:65536' >"$root/etc/$list"; done
  chmod u+s "$root/usr/bin/newuidmap" "$root/usr/bin/newgidmap"
  mkdir -p "$root/home/tester" "$root"/{proc,sys,dev,run,tmp,mnt,job,root} "$root/var/tmp"
  chmod 1777 "$root/tmp" "$root/var/tmp"
  chown 1000:1000 "$root/home/tester"
  ln -sf mawk "$root/usr/bin/awk"
  ln -sf /proc/mounts "$root/etc/mtab"
  echo vm >"$root/etc/hostname"
  printf '127.0.0.1 localhost vm\n' >"$root/etc/hosts"
  [ -e "$root/usr/bin/python3" ] || ln -s python3.11 "$root/usr/bin/python3"
  [ -e "$root/bin/sh" ] || ln -s dash "$root/bin/sh"
  rm -rf "$root"/usr/share/{doc,man,locale,info,lintian,bug}
  truncate -s 1536M "$images/rootfs.tmp"
  mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -E lazy_itable_init=1 -m 0 -d "$root" "$images/rootfs.tmp"
  mv "$images/rootfs.tmp" "$images/rootfs.ext4"
  echo "$packages" >"$images/packages"
fi

modules="virtio_pci virtio_mmio virtio_blk virtio_console virtio_rng ext4 overlay loop fuse veth tun nf_tables
  nft_chain_nat nft_redir nft_nat nft_ct nft_reject nf_conntrack nf_nat unix_diag inet_diag
  vfat nls_cp437 nls_ascii nls_iso8859-1 nls_utf8 btrfs xfs"

# The newest package of a series, or an older one (the third argument counts back), with its parts.
kernel_packages() {
  local label=$1 suite expression package
  case $label in
    5.10) suite=bullseye expression="^linux-image-5\.10\.[0-9-]+-cloud-$arch\$" ;;
    6.1) suite=bookworm expression="^linux-image-6\.1\.[0-9-]+-cloud-$arch\$" ;;
    6.12) suite=bookworm expression="^linux-image-6\.12\.[0-9.+a-z-]+-cloud-$arch\$" ;;
    bpo) suite=trixie-backports expression="^linux-image-[0-9.+a-z-]+-cloud-$arch\$" ;;
    *)
      log "unknown kernel $label"
      return 1
      ;;
  esac
  package=$(pcache $suite "$arch" search --names-only '^linux-image-[0-9]' | awk '{print $1}' |
    grep -E "$expression" | sort -V | tail -"$2" | head -1)
  if [ -z "$package" ]; then
    log "no kernel $label for $arch"
    return 1
  fi
  echo "$suite $package" $(pcache $suite "$arch" depends "$package" |
    awk '$1=="Depends:" && $2 ~ /^linux-(binary|modules)-/{print $2}')
}

for kernel in "${kernels[@]}"; do
  into=$images/$kernel
  initramfs=$CACHE/initrd-$arch-$kernel
  pack() {
    install -m755 "$VM_SOURCE/initramfs-init" "$initramfs/init"
    install -m755 "$VM_SOURCE/guest-init" "$initramfs/guest-init"
    (cd "$initramfs" && find . | LC_ALL=C sort | "$tools/bin/cpio" --quiet -o -H newc -R 0:0) >"$into/initrd.tmp"
    mv "$into/initrd.tmp" "$into/initrd"
  }
  if [ -e "$into/initrd" ] && [ -d "$initramfs" ]; then
    if ! cmp -s "$VM_SOURCE/guest-init" "$initramfs/guest-init" || ! cmp -s "$VM_SOURCE/initramfs-init" "$initramfs/init"; then
      pack
    fi
    continue
  fi
  debs=$CACHE/kdebs-$arch-$kernel
  unpacked=$CACHE/kx-$arch-$kernel
  rm -rf "$debs" "$unpacked" "$initramfs"
  mkdir -p "$debs" "$unpacked" "$into"
  merged_usr "$unpacked" lib
  got=
  for back in 1 2 3; do # a mirror may list a package without having its file
    # shellcheck disable=SC2046
    set -- $(kernel_packages "$kernel" $back)
    suite=$1
    shift
    log "kernel $kernel: $*"
    if (cd "$debs" && papt "$suite" "$arch" -qq download "$@"); then
      got=1
      break
    fi
  done
  [ -n "$got" ]
  unpack "$unpacked" "$debs"/*.deb
  version=$(ls "$unpacked/usr/lib/modules")
  for file in "$unpacked/boot/vmlinuz-$version" "$unpacked/usr/lib/modules/$version/vmlinuz"; do
    if [ -e "$file" ]; then cp "$file" "$into/vmlinuz"; fi
  done
  kernel_tool depmod -b "$unpacked" "$version" 2>/dev/null
  mkdir -p "$initramfs"/{bin,proc,sys,dev,root,"lib/modules/$version"}
  # The listed modules with all dependencies, decompressed, because the emulated machine is slower.
  for module in $modules; do
    kernel_tool modprobe -d "$unpacked" -S "$version" --show-depends "$module" 2>/dev/null || :
  done | awk '$1=="insmod"{print $2}' | sort -u | while read -r file; do
    relative=${file#*"/lib/modules/$version/"}
    target=$initramfs/lib/modules/$version/$relative
    mkdir -p "$(dirname "$target")"
    case $file in
      *.xz) xz -dc "$file" >"${target%.xz}" ;;
      *.zst) zstd -qdc "$file" >"${target%.zst}" ;;
      *) cp "$file" "$target" ;;
    esac
  done
  for list in modules.builtin modules.order modules.builtin.modinfo; do
    cp "$unpacked/usr/lib/modules/$version/$list" "$initramfs/lib/modules/$version/" 2>/dev/null || :
  done
  kernel_tool depmod -b "$initramfs" "$version" 2>/dev/null
  cp "$CACHE/root-$arch/usr/bin/busybox" "$initramfs/bin/busybox"
  for applet in sh mount umount switch_root insmod mkdir cat sleep echo modprobe cp poweroff; do
    ln -s busybox "$initramfs/bin/$applet"
  done
  pack
done
