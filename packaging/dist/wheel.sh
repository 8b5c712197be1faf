#!/bin/sh
# wheel.sh: builds the wheels caisson (the programs of the staged tree) and caisson-client, with only Python's standard
# library.
set -eu
. "$(dirname -- "$0")/lib.sh"
. "$root/packaging/dist/portable.sh"
client=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/clients/python/pyproject.toml")
[ "$client" = "$version" ] || die "clients/python/pyproject.toml has version $client, CMakeLists.txt $version"
mkdir -p "$output"
python3 -B "$root/packaging/python/build_wheel.py"
python3 -B "$root/clients/python/tools/build_wheel.py" "$output" >/dev/null
