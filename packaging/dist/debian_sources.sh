# Sourced, POSIX sh.
# package_sources SUITE...: prints lines for sources.list with the addresses that apt uses on this machine.
package_sources() {
  addresses=$({
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
    sed -n 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
  } 2>/dev/null || :)
  for suite in "$@"; do
    case $suite in
      *-security) address=$(printf '%s\n' "$addresses" | grep -m 1 security || :) ;;
      *) address=$(printf '%s\n' "$addresses" | grep -v -m 1 security || :) ;;
    esac
    if [ -n "$address" ]; then
      printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$address" "$suite"
    fi
  done
}
