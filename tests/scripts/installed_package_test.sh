#!/bin/sh
# installed_package_test.sh BUILD SOURCE COMPILER: installs to a new prefix, builds the example with the installed
# package, runs it, and checks that every documented file is installed.
set -eu
build=$1
source=$2
compiler=$3
place=$(mktemp -d "${TMPDIR:-/tmp}/caisson-install-XXXXXXXX")
trap 'rm -rf --one-file-system "$place"' EXIT
chmod 755 "$place"
prefix=$place/prefix

# Prints the output of a command only if it fails.
step() {
  if ! "$@" >"$place/log" 2>&1; then
    cat "$place/log"
    echo "failed: $*"
    exit 1
  fi
}

step cmake --install "$build" --prefix "$prefix"
for file in bin/caisson libexec/caisson/caisson-broker libexec/caisson/caisson-mcp libexec/caisson/caisson-server include/caisson/caisson.h share/bash-completion/completions/caisson share/man/man1/caisson.1 \
  share/zsh/site-functions/_caisson share/fish/vendor_completions.d/caisson.fish share/caisson/policy.schema.json \
  share/doc/caisson/NOTICE share/caisson/seccomp/caisson.json share/caisson/seccomp/make_profile.py share/caisson/container/Containerfile; do
  test -s "$prefix/$file" || { echo "not installed: $file"; exit 1; }
done

step cmake -S "$source/examples/run_python" -B "$place/example" -G Ninja \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler"
step cmake --build "$place/example"

cd "$place"
said=$("$place/example/run_python" 'import os; print("uid", os.getuid())') || {
  echo "the example failed: $said"
  exit 1
}
test "$said" = 'uid 1000' || { echo "unexpected output of the example: $said"; exit 1; }
said=$("$prefix/bin/caisson" run -- sh -c 'id -u; hostname') || { echo "the installed caisson failed: $said"; exit 1; }
test "$said" = "1000
sandbox" || { echo "unexpected output of the installed caisson: $said"; exit 1; }
said=$("$prefix/bin/caisson" mcp </dev/null 2>&1) || { echo "the installed caisson does not serve MCP: $said"; exit 1; }
