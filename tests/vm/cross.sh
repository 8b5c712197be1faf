#!/bin/bash
# cross.sh ARCHITECTURE TARGET...: builds targets for another architecture (amd64 | arm64) into build-ARCHITECTURE;
# without a target it only configures.
set -euo pipefail
kit=$(cd "$(dirname "$0")" && pwd)
source_root=$(cd "$kit/../.." && pwd)
arch=$1
if [ "${CAISSON_CROSS:-}" != "$arch" ]; then exec bash "$kit/toolchain.sh" "$arch" bash "$0" "$@"; fi
shift
launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
fi
# Most builds are complete ones, for which compiling several files together takes half the time, even with a cache.
cmake -S "$source_root" -B "$source_root/build-$arch" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCAISSON_UNITY=ON -DCAISSON_PRECOMPILE=ON "${launcher[@]}" >/dev/null
if [ $# = 0 ]; then exit; fi
exec nice -n 5 ninja -C "$source_root/build-$arch" ${CAISSON_JOBS:+-j "$CAISSON_JOBS"} "$@"
