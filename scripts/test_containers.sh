#!/bin/sh
# test_containers.sh [ROW,...]: runs caisson inside containers of Docker, Podman, containerd and runc and compares the
# results with tests/containers/expected.toml. Needs root; takes about 20 minutes. The image is cached in
# CAISSON_CONTAINER_CACHE (default: ~/.cache/caisson-containers). CAISSON_CONTAINER_REPORT receives all details as JSON.
set -eu
. "$(dirname -- "$0")/lib.sh"
[ "$(id -u)" = 0 ] || die "only root can start container engines: run sudo make test-containers"
dir=$root/build
sh "$root/scripts/build.sh" release caisson caisson-mcp caisson-broker caisson-server
CAISSON_LOG_FILE=$dir/build.log sh "$root/scripts/install_dependencies.sh" containers
user=caisson-tester
if ! id -u "$user" >/dev/null 2>&1; then useradd -m -s /bin/sh "$user"; fi
cache=${CAISSON_CONTAINER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caisson-containers}
mkdir -p "$cache"
exec python3 "$root/tests/containers/test_containers.py" "$dir" --image "$cache/image-1.tar" ${1:+--rows "$1"} \
  --report "${CAISSON_CONTAINER_REPORT:-$dir/containers.json}"
