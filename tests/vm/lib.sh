# Shared by the scripts of this folder: directories, and a private apt (separate lists, dpkg status and architecture) that
# does not change the package state of this machine.
VM_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VM_HOME=${CAISSON_VM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/caisson-vm} # images, tools and downloads: outside the tree
CACHE=$VM_HOME/cache

log() { printf '[vm %s] %s\n' "$(date +%H:%M:%S)" "$*" >&2; }

# Prints the addresses of the machine's package sources, in both of apt's formats. They are never written to the tree.
package_sources() {
  {
    grep -hE '^URIs:' /etc/apt/sources.list.d/*.sources | awk '{print $2}'
    grep -hE '^deb ' /etc/apt/sources.list /etc/apt/sources.list.d/*.list | sed -E 's/\[[^]]*\]//' | awk '{print $2}'
  } 2>/dev/null
}
# If nothing is found, the output is empty; this is not an error.
mirror_main() { package_sources | awk '!/security/ { print; exit }' || :; }
mirror_security() { package_sources | awk '/security/ { print; exit }' || :; }

# papt SUITE ARCHITECTURE ARGUMENT...: apt-get; pcache: apt-cache.
papt() { private_apt apt-get "$@"; }
pcache() { private_apt apt-cache "$@"; }
private_apt() {
  local tool=$1 suite=$2 arch=$3
  shift 3
  local d=$CACHE/apt-$suite-$arch
  if [ ! -e "$d/ok" ]; then
    local main security
    main=$(mirror_main)
    security=$(mirror_security)
    if [ -z "$main" ]; then
      log "no package source found in /etc/apt"
      return 1
    fi
    mkdir -p "$d/state/lists/partial" "$d/cache/archives/partial" "$d/etc/preferences.d" "$d/etc/trusted.gpg.d"
    : >"$d/status"
    local key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
    {
      echo "deb $key $main $suite main"
      case $suite in bookworm | trixie)
        echo "deb $key $main $suite-updates main"
        if [ -n "$security" ]; then echo "deb $key $security $suite-security main"; fi
        ;;
      esac
    } >"$d/etc/sources.list"
    cat >"$d/apt.conf" <<CONF
Dir::Etc::sourcelist "$d/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "$d/etc/preferences.d";
Dir::Etc::preferences "$d/etc/preferences";
Dir::State "$d/state";
Dir::State::status "$d/status";
Dir::Cache "$d/cache";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
CONF
    APT_CONFIG=$d/apt.conf apt-get -qq update >&2 || return 1
    touch "$d/ok"
  fi
  APT_CONFIG=$d/apt.conf "$tool" "$@"
}

# fetch_closure SUITE ARCHITECTURE DIRECTORY PACKAGE...: downloads packages with all dependencies.
fetch_closure() {
  local suite=$1 arch=$2 out=$3
  shift 3
  mkdir -p "$out/partial"
  papt "$suite" "$arch" -y -qq -o Dir::Cache::archives="$out" --download-only install "$@" >&2
}

# unpack ROOT FILE...: unpacks without maintainer scripts, so it works for any architecture; keeps the links of a merged
# /usr.
unpack() {
  local root=$1 file
  shift
  for file in "$@"; do dpkg-deb --fsys-tarfile "$file" | tar -x --keep-directory-symlink -C "$root"; done
}

merged_usr() { # ROOT DIRECTORY...
  local root=$1 name
  shift
  for name in "$@"; do
    mkdir -p "$root/usr/$name"
    ln -s "usr/$name" "$root/$name"
  done
}
