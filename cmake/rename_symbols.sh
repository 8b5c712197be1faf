#!/bin/sh
# rename_symbols.sh NM OBJCOPY ARCHIVE LIBRARY...: adds the prefix "caisson_" to the symbols of the libraries, which are
# part of ARCHIVE. Templates of the standard library keep their names: they are the same everywhere.
set -eu
nm=$1 objcopy=$2 archive=$3
shift 3
"$nm" --portability --extern-only --defined-only "$@" | awk 'NF > 2 && $1 ~ /3re2|yaml|LogMessage/ { print $1, "caisson_" $1 }' |
  LC_ALL=C sort -u >"$archive.symbols"
"$objcopy" --enable-deterministic-archives --redefine-syms="$archive.symbols" "$archive"
rm "$archive.symbols"
