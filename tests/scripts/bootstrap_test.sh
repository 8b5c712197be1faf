#!/bin/sh
# ./caisson executes the built binary from any directory, and prints a clear error if it cannot build.
# Uses a copy of the scripts and a fake binary; installs and builds nothing.
set -eu
source=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
place=$(mktemp -d "${TMPDIR:-/tmp}/caisson-bootstrap-XXXXXXXX")
trap 'rm -rf --one-file-system "$place"' EXIT
chmod 755 "$place"

fail() {
  echo "failed: $1"
  exit 1
}
equal() { [ "$2" = "$3" ] || fail "$1: expected <$3>, got <$2>"; }

clone=$place/clone
mkdir -p "$clone/build" "$place/else where" "$place/bin"
cp "$source/caisson" "$clone/"
cp -R "$source/scripts" "$clone/"
cat >"$clone/build/caisson" <<'STANDIN'
#!/bin/sh
printf '%s|' "$PWD" "$#" "$@"
cat
exit 7
STANDIN
chmod 755 "$clone/build/caisson"

# Arguments, standard input, working directory and exit status are passed through, also through links.
ln -s ../clone/caisson "$place/bin/one"
ln -s one "$place/bin/two"
ln -s "$clone/caisson" "$place/bin/absolute"
cd "$place/else where"
for way in "$clone/caisson" ../clone/caisson ../bin/one ../bin/two "$place/bin/absolute"; do
  status=0
  said=$(printf 'input' | "$way" run -- 'a b' '') || status=$?
  equal "status through $way" "$status" 7
  equal "call through $way" "$said" "$place/else where|4|run|--|a b||input"
done
cd "$clone"
equal "sh caisson" "$(sh caisson </dev/null || :)" "$clone|0|"

# If the binary exists, no other process is started: it works with an empty PATH.
printf '#!/bin/sh\necho reached\n' >"$clone/build/caisson"
equal "empty PATH" "$(PATH=/nonexistent ./caisson x 2>&1)" reached

# `mcp` needs a second program, which is built if it does not exist; its help does not need it.
mv "$clone/scripts/bootstrap.sh" "$place/bootstrap.sh"
cat >"$clone/scripts/bootstrap.sh" <<'STANDIN'
echo "building $1"
STANDIN
equal "mcp without its program" "$(./caisson mcp)" "building caisson-mcp
reached"
equal "image without its program" "$(./caisson image list)" "building caisson-image
reached"
equal "help of image" "$(./caisson image --help)" reached
equal "help of mcp" "$(./caisson mcp --help)" reached
printf '#!/bin/sh\n' >"$clone/build/caisson-mcp"
chmod 755 "$clone/build/caisson-mcp"
equal "mcp with its program" "$(./caisson mcp)" reached
equal "serve without its program" "$(./caisson serve)" "building caisson-server
reached"
equal "token without its program" "$(./caisson token list)" "building caisson-server
reached"
equal "help of serve" "$(./caisson serve --help)" reached
rm "$clone/build/caisson-mcp"
mv "$place/bootstrap.sh" "$clone/scripts/bootstrap.sh"

# A user who may not install packages gets the command for an administrator on standard error, and status 125.
rm -f "$clone/build/caisson"
mkdir "$place/shims"
for name in dpkg-query sudo; do
  printf '#!/bin/sh\nexit 1\n' >"$place/shims/$name"
  chmod 755 "$place/shims/$name"
done
unprivileged=
if [ "$(id -u)" = 0 ]; then
  chown -R 65534:65534 "$clone"
  unprivileged='setpriv --reuid 65534 --regid 65534 --clear-groups'
fi
status=0
# shellcheck disable=SC2086
PATH="$place/shims:$PATH" $unprivileged "$clone/caisson" run -- true </dev/null >"$place/out" 2>"$place/err" || status=$?
equal "status without packages" "$status" 125
equal "standard output" "$(cat "$place/out")" ""
grep -q 'apt-get update && apt-get install -y --no-install-recommends .*cmake' "$place/err" || fail "no command for an administrator: $(cat "$place/err")"

# A clone of another user that was never built: the message contains the owner and the fix.
if [ "$(id -u)" = 0 ]; then
  chown -R 0:0 "$clone"
  rm -rf --one-file-system "$clone/build"
  status=0
  $unprivileged "$clone/caisson" run -- true </dev/null >"$place/out" 2>"$place/err" || status=$?
  equal "status in a foreign clone" "$status" 125
  grep -q "the clone belongs to root" "$place/err" || fail "foreign clone: $(cat "$place/err")"
fi
