#!/bin/sh
# tidy.sh [FILE...]: clang-tidy over the named source files, or over all of src/ and tests/. Checks: .clang-tidy.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" tidy
# clang-tidy reads the compile commands of a Clang build: those of GCC have options that it does not know.
sh "$root/scripts/build.sh" --tests clang
cd "$root"
if [ $# = 0 ]; then
  # shellcheck disable=SC2046
  set -- $(git -c safe.directory="$root" ls-files --cached --others --exclude-standard -- 'src/*.cc' 'tests/*.cc' |
    while read -r file; do if grep -qF "\"file\": \"$root/$file\"" build-clang/compile_commands.json; then printf '%s\n' "$file"; fi; done)
fi
# Filter out counts of suppressed warnings: a clean file prints nothing.
printf '%s\n' "$@" | xargs -P "${CAISSON_JOBS:-$(nproc)}" -n 1 sh -c '
  if ! said=$(clang-tidy-19 -p build-clang --quiet "$1" 2>&1); then printf "%s\n" "$said"; exit 1; fi' tidy
say "clang-tidy: $# files, no complaint"
