# Values and helpers for scripts/dist.sh and packaging/dist/*.sh; sourced, POSIX sh.

if [ -z "${root:-}" ]; then
  root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
  say() { printf 'caisson: %s\n' "$*" >&2; }
  die() {
    say "$@"
    exit 125
  }
fi
version=$(sed -n 's/^project(caisson VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
# CAISSON_CROSS: the target architecture of a cross build; set by tests/vm/toolchain.sh.
case ${CAISSON_CROSS:-$(uname -m)} in
  arm64 | aarch64) machine=aarch64 deb_arch=arm64 npm_arch=arm64 image_arch=arm64 ;;
  amd64 | x86_64) machine=x86_64 deb_arch=amd64 npm_arch=x64 image_arch=amd64 ;;
  *) die "no packages for $(uname -m): expected aarch64 or x86_64" ;;
esac
# tests/packages sets these to build in another directory.
build=${CAISSON_DIST_BUILD:-$root/build-dist${CAISSON_CROSS:+-$CAISSON_CROSS}}
output=${CAISSON_DIST_OUTPUT:-$root/dist}
# The installed tree: $stage/usr/bin/caisson and so on.
stage=$build/stage
# Scratch directories of the artefacts: $work/NAME.
work=$build/work
export version machine deb_arch npm_arch image_arch build output stage work

# Every time stamp in a package is the time of the commit, so that two builds of a commit are identical.
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
  SOURCE_DATE_EPOCH=$(sh "$root/packaging/dist/commit.sh" time)
fi
export SOURCE_DATE_EPOCH
export TZ=UTC LC_ALL=C
umask 022

# scratch NAME: makes the empty directory $work/NAME and prints its path.
scratch() {
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  printf '%s\n' "$work/$1"
}

# set_times DIRECTORY: gives every file below it the time of the commit.
set_times() {
  find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# make_tarball FILE DIRECTORY NAME: packs DIRECTORY/NAME into FILE (.tar.gz), reproducibly.
make_tarball() {
  (cd "$2" && tar --create --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s \
    --mtime="@$SOURCE_DATE_EPOCH" "$3") | gzip -9n >"$1"
}

# make_manifest PREFIX NAME: writes and signs PREFIX/share/caisson/NAME, the SHA-256 sums of all files below PREFIX, for
# `caisson self verify`. NAME is MANIFEST, or MANIFEST.PART for a package that is installed in addition to the main one.
# Call it when the files are final: after compressing manual pages, before set_times.
make_manifest() {
  mkdir -p "$1/share/caisson"
  rm -f "$1/share/caisson/$2" "$1/share/caisson/$2.sig"
  (cd "$1" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum) >"$work/manifest"
  mv "$work/manifest" "$1/share/caisson/$2"
  sh "$root/packaging/dist/sign.sh" "$1/share/caisson/$2"
}
