#!/bin/bash
# cross.sh ARCHITECTURE TARGET...: builds targets for another architecture (amd64 | arm64) into build-ARCHITECTURE;
# without a target it only configures.
# Compiler, libraries and an emulator for the build's own tools are unpacked below CAISSON_VM_CACHE; nothing is installed
# and no foreign architecture is added to this machine's dpkg.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
arch=$1
shift
host_arch=$(dpkg --print-architecture)
case $arch in
  arm64) machine=aarch64 package=g++-aarch64-linux-gnu emulator=qemu-aarch64-static ;;
  amd64) machine=x86_64 package=g++-x86-64-linux-gnu emulator=qemu-x86_64-static ;;
  *)
    log "unknown architecture $arch"
    exit 1
    ;;
esac
triplet=$machine-linux-gnu
tools=$VM_HOME/tools/cross-$arch
sysroot=$VM_HOME/sysroot-$arch

if [ ! -e "$tools/ok" ]; then
  log "cross compiler for $arch"
  rm -rf "$tools"
  mkdir -p "$tools"
  merged_usr "$tools" bin sbin lib lib64
  fetch_closure bookworm "$host_arch" "$CACHE/debs-cross-$arch" $package qemu-user-static
  unpack "$tools" "$CACHE/debs-cross-$arch"/*.deb
  touch "$tools/ok"
fi

# The libraries of the build and test sections of the one list of dependencies, for the other architecture.
packages="libc6-dev libstdc++-12-dev linux-libc-dev $(awk '/^\[/ { use = $1 == "[build]" || $1 == "[test]"; next }
  use && $1 ~ /^lib.*-dev$|^nlohmann/ { print $1 }' "$source_root/scripts/dependencies.txt" | tr '\n' ' ')"
if [ "$(cat "$sysroot/.packages" 2>/dev/null)" != "$packages" ]; then
  log "libraries for $arch"
  rm -rf "$sysroot" "$CACHE/debs-sysroot-$arch"
  mkdir -p "$sysroot"
  merged_usr "$sysroot" bin sbin lib lib64
  # shellcheck disable=SC2086
  fetch_closure bookworm "$arch" "$CACHE/debs-sysroot-$arch" $packages
  unpack "$sysroot" "$CACHE/debs-sysroot-$arch"/*.deb
  # Absolute links would lead to this machine's own files.
  find "$sysroot" -type l -lname '/*' | while read -r link; do ln -sfn "$sysroot$(readlink "$link")" "$link"; done
  echo "$packages" >"$sysroot/.packages"
fi
# Linker scripts name their libraries by absolute paths that are not there (libm.a of x86_64 is one).
grep -lIE 'GNU ld script' "$sysroot/usr/lib/$triplet"/*.{so,a} "$tools/usr/$triplet"/lib/*.{so,a} 2>/dev/null |
  xargs -r sed -i -E '/^GROUP/s,/[^ ]*/,,g'

cat >"$VM_HOME/toolchain-$arch.cmake" <<CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $machine)
set(CMAKE_SYSROOT $sysroot)
set(CMAKE_C_COMPILER $tools/usr/bin/$triplet-gcc-12)
set(CMAKE_CXX_COMPILER $tools/usr/bin/$triplet-g++-12)
set(CMAKE_C_FLAGS_INIT "-B$tools/usr/lib/gcc-cross/$triplet/12")
set(CMAKE_CXX_FLAGS_INIT "-B$tools/usr/lib/gcc-cross/$triplet/12")
set(CMAKE_LIBRARY_ARCHITECTURE $triplet)
set(CMAKE_FIND_ROOT_PATH $sysroot)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR $tools/usr/bin/$emulator;-L;$sysroot)
CMAKE

export PATH="$tools/usr/bin:$PATH"
export LD_LIBRARY_PATH="$tools/usr/lib/$(uname -m)-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PKG_CONFIG_SYSROOT_DIR="$sysroot" PKG_CONFIG_LIBDIR="$sysroot/usr/lib/$triplet/pkgconfig:$sysroot/usr/share/pkgconfig"
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi
# From nothing most of the time, where compiling several files at a time takes half as long even with a cache.
cmake -S "$source_root" -B "$source_root/build-$arch" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCAISSON_UNITY=ON -DCAISSON_PRECOMPILE=ON \
  -DCMAKE_TOOLCHAIN_FILE="$VM_HOME/toolchain-$arch.cmake" "${launcher[@]}" >/dev/null
if [ $# = 0 ]; then exit; fi
exec nice -n 5 ninja -C "$source_root/build-$arch" ${CAISSON_JOBS:+-j "$CAISSON_JOBS"} "$@"
