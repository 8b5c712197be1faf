#!/bin/sh
# commit.sh id|time: prints the commit of this source tree, or its time in seconds. The id ends in "+changes" if files
# have uncommitted changes. Without git, both come from packaging/dist/commit.txt, which `git archive` fills in.
set -eu
tree=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
id=unknown
time=0
if [ -e "$tree/.git" ] && id=$(git -C "$tree" rev-parse --verify --quiet HEAD 2>/dev/null); then
  time=$(git -C "$tree" log -1 --format=%ct)
  git -C "$tree" diff --quiet HEAD -- 2>/dev/null || id=$id+changes
else
  id=unknown
  read -r stored_id stored_time <"$tree/packaging/dist/commit.txt" || :
  case $stored_id in *[!0-9a-f]*) ;; *) id=$stored_id time=$stored_time ;; esac
fi
case ${1:-id} in
  id) printf '%s\n' "$id" ;;
  time) printf '%s\n' "$time" ;;
  *) echo "usage: commit.sh id|time" >&2; exit 2 ;;
esac
