#!/bin/bash
# toolchain.sh ARCHITECTURE COMMAND...: runs a command that builds for another architecture (amd64 | arm64): cmake,
# pkg-config and the package tools find a cross compiler and Debian 12's libraries of that architecture. They are unpacked
# below CAISSON_VM_CACHE; nothing is installed, and no foreign architecture is added to this machine's dpkg.
# Exports CAISSON_CROSS (the architecture), CAISSON_SYSROOT, CAISSON_EMULATOR and CMAKE_TOOLCHAIN_FILE.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
arch=$1
shift
host_arch=$(dpkg --print-architecture)
case $arch in
  arm64) machine=aarch64 package=g++-aarch64-linux-gnu ;;
  amd64) machine=x86_64 package=g++-x86-64-linux-gnu ;;
  *)
    log "unknown architecture $arch: expected amd64 or arm64"
    exit 1
    ;;
esac
triplet=$machine-linux-gnu
tools=$VM_HOME/tools/cross-$arch
sysroot=$VM_HOME/sysroot-$arch
emulator=$tools/usr/bin/qemu-$machine-static

if [ ! -e "$tools/ok-2" ]; then
  log "cross compiler for $arch"
  rm -rf "$tools"
  mkdir -p "$tools"
  merged_usr "$tools" bin sbin lib lib64
  fetch_closure bookworm "$host_arch" "$CACHE/debs-cross-$arch" $package qemu-user-static
  unpack "$tools" "$CACHE/debs-cross-$arch"/*.deb
  # The libraries that the compiler depends on get no security updates, so the libraries of the sysroot replace them.
  rm -rf "$tools/usr/$triplet"/{include,lib,lib64} "$tools/usr/lib/gcc-cross/$triplet/12"/{include,*.a,*.o}
  touch "$tools/ok-2"
fi

# register FILE...: adds packages to the sysroot's dpkg database, which contains the paths of files on this machine.
register() {
  local database=$sysroot/var/lib/dpkg control file kind name
  control=$database/control
  mkdir -p "$database/info" "$database/updates"
  echo 1 >"$database/info/format"
  for file in "$@"; do
    dpkg-deb --control "$file" "$control"
    { echo "Status: install ok installed" && cat "$control/control" && echo; } >>"$database/status"
    name=$(dpkg-deb --field "$file" Package)
    if grep -qx 'Multi-Arch: same' "$control/control"; then name=$name:$arch; fi
    dpkg-deb --fsys-tarfile "$file" | tar -t |
      sed -E "s,^\.,,; s,/\$,,; s,^/(bin|sbin|lib|lib64)(/|\$),/usr&,; s,^,$sysroot," >"$database/info/$name.list"
    for kind in shlibs symbols; do
      if [ -e "$control/$kind" ]; then mv "$control/$kind" "$database/info/$name.$kind"; fi
    done
    rm -r "$control"
  done
}

# The libraries of these sections of scripts/dependencies.txt, for the other architecture.
packages="libc6-dev libstdc++-12-dev linux-libc-dev $(awk '/^\[/ { use = $1 ~ /^\[(build|image|test)\]$/; next }
  use && $1 ~ /^lib.*-dev$|^nlohmann|^zlib/ { print $1 }' "$source_root/scripts/dependencies.txt" | tr '\n' ' ')"
if [ "$(cat "$sysroot/.packages" 2>/dev/null)" != "$packages" ]; then
  log "libraries for $arch"
  rm -rf "$sysroot" "$CACHE/debs-sysroot-$arch"
  mkdir -p "$sysroot"
  merged_usr "$sysroot" bin sbin lib lib64
  # shellcheck disable=SC2086
  fetch_closure bookworm "$arch" "$CACHE/debs-sysroot-$arch" $packages
  unpack "$sysroot" "$CACHE/debs-sysroot-$arch"/*.deb
  register "$CACHE/debs-sysroot-$arch"/*.deb
  # Absolute links would point to files of this machine.
  find "$sysroot" -type l -lname '/*' | while read -r link; do ln -sfn "$sysroot$(readlink "$link")" "$link"; done
  # Linker scripts contain absolute paths that do not exist (libm.a of x86_64 is one).
  grep -lIE 'GNU ld script' "$sysroot/usr/lib/$triplet"/*.{so,a} 2>/dev/null | xargs -r sed -i -E '/^GROUP/s,/[^ ]*/,,g'
  echo "$packages" >"$sysroot/.packages"
fi

programs=$tools/usr/lib/gcc-cross/$triplet/12
libraries=$sysroot/usr/lib/gcc/$triplet/12
flags="-B$libraries -B$programs -ffile-prefix-map=$sysroot="
headers="-nostdinc++ -isystem $sysroot/usr/include/c++/12 -isystem $sysroot/usr/include/$triplet/c++/12"
export CMAKE_TOOLCHAIN_FILE=$VM_HOME/toolchain-$arch.cmake
cat >"$CMAKE_TOOLCHAIN_FILE.$$" <<CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $machine)
set(CMAKE_SYSROOT $sysroot)
set(CMAKE_C_COMPILER $tools/usr/bin/$triplet-gcc-12)
set(CMAKE_CXX_COMPILER $tools/usr/bin/$triplet-g++-12)
set(CMAKE_C_FLAGS_INIT "$flags")
set(CMAKE_CXX_FLAGS_INIT "$flags $headers")
set(CMAKE_LIBRARY_ARCHITECTURE $triplet)
set(CMAKE_FIND_ROOT_PATH $sysroot)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR $emulator;-L;$sysroot)
CMAKE
# Keep an unchanged file: a new one would make every build configure again.
if cmp -s "$CMAKE_TOOLCHAIN_FILE.$$" "$CMAKE_TOOLCHAIN_FILE"; then
  rm "$CMAKE_TOOLCHAIN_FILE.$$"
else
  mv "$CMAKE_TOOLCHAIN_FILE.$$" "$CMAKE_TOOLCHAIN_FILE"
fi

export CAISSON_CROSS=$arch CAISSON_SYSROOT=$sysroot CAISSON_EMULATOR=$emulator
export PATH="$tools/usr/bin:$PATH"
export LD_LIBRARY_PATH="$tools/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PKG_CONFIG_SYSROOT_DIR="$sysroot" PKG_CONFIG_LIBDIR="$sysroot/usr/lib/$triplet/pkgconfig:$sysroot/usr/share/pkgconfig"
exec "$@"
