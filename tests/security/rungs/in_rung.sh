#!/bin/sh
# in_rung.sh RUNG WITHOUT CAISSON ARGUMENT...: runs `CAISSON ARGUMENT...` without the kernel feature that the rung
# replaces, and allows the rung. WITHOUT: the program of tests/degraded that removes features.
set -u
rung=$1 without=$2 caisson=$3
shift 3
case $rung in
  hostname) missing=sethostname,setdomainname:EPERM ;;
  proc_subset | proc_bound) missing=masked_proc ;;
  landlock) missing=namespaces ;;
  *)
    echo "in_rung.sh: unknown rung $rung" >&2
    exit 2
    ;;
esac
case ${1-} in
  run | plan | verify | mcp)
    verb=$1
    shift
    set -- "$verb" --allow-weaker "$rung" "$@"
    ;;
  session)
    if [ "${2-}" = create ]; then
      shift 2
      set -- session create --allow-weaker "$rung" "$@"
    fi
    ;;
esac
# The tier has no mounts, so the workspace is at its host path. Attacks on /workspace would fail because it does not exist.
if [ "$rung" = landlock ]; then
  directory='' previous=''
  for word; do
    if [ "$previous" = --workspace ]; then directory=${word%:*}; fi
    previous=$word
  done
  case $directory in
    /*)
      left=$#
      while [ "$left" -gt 0 ]; do
        word=$1
        shift
        case $word in
          */workspace*) word=$(printf '%s' "$word" | sed -E "s%(^|[^A-Za-z0-9_./-])/workspace%\\1$directory%g") ;;
        esac
        set -- "$@" "$word"
        left=$((left - 1))
      done
      ;;
  esac
fi
exec "$without" "$missing" -- "$caisson" "$@"
