#!/bin/sh
# tidy.sh [FILE...]: runs clang-tidy on the named source files, by default on all of src/ and tests/. The checks are in
# .clang-tidy.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" tidy
# clang-tidy reads the compile commands of a Clang build: GCC has options that it does not support.
sh "$root/scripts/build.sh" --tests clang
cd "$root"
if [ $# = 0 ]; then
  # shellcheck disable=SC2046
  set -- $(git -c safe.directory="$root" ls-files --cached --others --exclude-standard -- 'src/*.cc' 'tests/*.cc' |
    while read -r file; do if grep -qF "\"file\": \"$root/$file\"" build-clang/compile_commands.json; then printf '%s\n' "$file"; fi; done)
fi
# Print only the output of failed files: clang-tidy also prints the number of suppressed warnings.
printf '%s\n' "$@" | xargs -P "${CAISSON_JOBS:-$(nproc)}" -n 1 sh -c '
  if ! said=$(clang-tidy-19 -p build-clang --quiet "$1" 2>&1); then printf "%s\n" "$said"; exit 1; fi' tidy
say "clang-tidy: $# files, no warnings"
