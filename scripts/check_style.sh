#!/bin/sh
# check_style.sh [--fix]: checks formatting and house rules of all files that git does not ignore.
set -eu
. "$(dirname -- "$0")/lib.sh"
cd "$root"
status=0
complain() {
  printf '%s\n' "$*" >&2
  status=1
}

# Also works in a clone that another user owns (CI as root).
files() {
  git -c safe.directory="$root" ls-files --cached --others --exclude-standard -- "$@" |
    while read -r file; do if [ -f "$file" ]; then printf '%s\n' "$file"; fi; done
}

format=clang-format-19
if ! command -v $format >/dev/null 2>&1; then die "$format not found: install the package clang-format-19"; fi
cpp=$(files '*.cc' '*.h' '*.c')
if [ "${1:-}" = --fix ]; then
  printf '%s\n' "$cpp" | xargs -r $format -i
  exit 0
fi
if ! printf '%s\n' "$cpp" | xargs -r $format --dry-run -Werror; then complain "formatting: run make format"; fi

text=$(files | grep -Ev '\.(png|ico|gz|bin)$|/corpus/' || :)
spaces=$(printf '%s\n' "$text" | xargs -r grep -nIE '[[:blank:]]+$' -- || :)
if [ -n "$spaces" ]; then complain "trailing whitespace:
$spaces"; fi

merges=$(printf '%s\n' "$text" | xargs -r grep -nIE '^(<<<<<<<|>>>>>>>) ' -- || :)
if [ -n "$merges" ]; then complain "merge conflict markers:
$merges"; fi

# Paths of this machine and addresses of its package mirror must not be in the repository. The script reads both from
# the machine, so that it does not contain them.
listed() { printf '%s\n' "$text" | xargs -r grep -nIF "$@" -- || :; }
hosts=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
  grep -oE '[a-z+]+://[^/ ]+' | sed 's#.*://##; s#.*@##' | sort -u || :)
private=$(listed -e "$root"; for host in $hosts; do listed -e "$host"; done)
neighbours=${root%/*}
case $neighbours in
  '' | /tmp | /home | /root | /usr | /srv | /opt) ;;
  *) private=$private$(printf '%s\n' "$text" | xargs -r grep -nIE "(^|[^A-Za-z0-9_}/.\"-])$neighbours/" -- || :) ;;
esac
if [ -n "$private" ]; then complain "paths or hosts of this machine:
$private"; fi

# Long files are hard to read. A warning, not an error.
printf '%s\n' "$cpp" | while read -r file; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt 500 ]; then printf 'warning: %s has %s lines; consider splitting it\n' "$file" "$lines" >&2; fi
done

for script in caisson $(files 'scripts/*.sh' 'tests/scripts/*.sh'); do
  sh -n "$script" || complain "$script: syntax error"
done
if [ $status = 0 ]; then echo "style: clean"; fi
exit $status
