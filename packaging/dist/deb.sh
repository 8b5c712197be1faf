#!/bin/sh
# deb.sh: builds dist/caisson_VERSION_ARCHITECTURE.deb, and the packages caisson-server and libcaisson-dev, from the
# installed tree. Called by scripts/dist.sh.
set -eu
. "$(dirname -- "$0")/lib.sh"

templates=$root/packaging/debian
maintainer='caisson maintainers <maintainers@caisson.invalid>'
database=${CAISSON_SYSROOT:-}/var/lib/dpkg
command -v dpkg-shlibdeps >/dev/null || die "dpkg-shlibdeps is missing: install dpkg-dev"
folder=$(scratch deb)

# take PACKAGE PATH...: copies files of the stage into the package's tree, under the same names.
take() {
  package=$1
  shift
  mkdir -p "$folder/$package"
  (cd "$stage" && tar -cf - -- "$@") | tar -xf - -C "$folder/$package"
}

# put PACKAGE FILE PATH [MODE]: copies one file to PATH in the package's tree.
put() { install -D -m "${4:-644}" "$2" "$folder/$1$3"; }

# shared_libraries PACKAGE: prints the packages that its dynamically linked programs need, in the format of Depends.
shared_libraries() {
  programs=
  for program in usr/bin/caisson usr/libexec/caisson/caisson-image usr/libexec/caisson/caisson-unpack; do
    # Relative to the scratch directory, so that the path of the clone may contain spaces.
    if readelf -d "$folder/$1/$program" | grep -q NEEDED; then programs="$programs ../$1/$program"; fi
  done
  [ -n "$programs" ] || return 0
  mkdir -p "$folder/shlibs/debian"
  printf 'Source: caisson\n\nPackage: %s\nArchitecture: any\n' "$1" >"$folder/shlibs/debian/control"
  # shellcheck disable=SC2086
  (cd "$folder/shlibs" && DEB_HOST_ARCH=$deb_arch dpkg-shlibdeps --admindir="$database" \
    -l"${CAISSON_SYSROOT:-}/usr/lib/$machine-linux-gnu" -O $programs >depends 2>errors) ||
    die "dpkg-shlibdeps failed: $(cat "$folder/shlibs/errors")"
  sed -n 's/^shlibs:Depends=//p' "$folder/shlibs/depends"
}

# finish PACKAGE DEPENDS: adds documents and control files, sets modes, and builds the package.
finish() {
  package=$1 depends=$2 tree=$folder/$1
  put "$package" "$templates/copyright" "/usr/share/doc/$package/copyright"
  gzip -9n <"$folder/changelog" >"$folder/changelog.gz"
  put "$package" "$folder/changelog.gz" "/usr/share/doc/$package/changelog.gz"
  if [ -f "$templates/$package.lintian-overrides" ]; then
    put "$package" "$templates/$package.lintian-overrides" "/usr/share/lintian/overrides/$package"
  fi
  find "$tree" -type d -exec chmod 755 {} +
  find "$tree" -type f -exec chmod 644 {} +
  for directory in usr/bin usr/libexec; do
    if [ -d "$tree/$directory" ]; then find "$tree/$directory" -type f -exec chmod 755 {} +; fi
  done
  case $package in
    caisson) make_manifest "$tree/usr" MANIFEST ;;
    *) make_manifest "$tree/usr" "MANIFEST.$package" ;;
  esac
  # Computed from file contents, because the size of a directory depends on the file system.
  size=$(find "$tree" -type f -printf '%s\n' -o -printf '1\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
  mkdir -m 755 "$tree/DEBIAN"
  (cd "$tree" && find usr -type f | sort | xargs -d '\n' md5sum) >"$tree/DEBIAN/md5sums"
  (cd "$tree" && if [ -d etc ]; then find etc -type f | sort | sed 's|^|/|' >DEBIAN/conffiles; fi)
  sed -e "s/@VERSION@/$version/g" -e "s/@ARCHITECTURE@/$deb_arch/" -e "s/@MAINTAINER@/$maintainer/" -e "s/@SIZE@/$size/" \
    -e "s/@LIBRARIES@/$depends/" -e '/^Depends: $/d' "$templates/$package.control" >"$tree/DEBIAN/control"
  for script in postinst prerm postrm; do
    if [ -f "$templates/$package.$script" ]; then install -m 755 "$templates/$package.$script" "$tree/DEBIAN/$script"; fi
  done
  if [ -f "$templates/$package.triggers" ]; then install -m 644 "$templates/$package.triggers" "$tree/DEBIAN/triggers"; fi
  find "$tree/DEBIAN" -type f ! -perm 755 -exec chmod 644 {} +
  set_times "$tree"
  # One thread, because the split into blocks depends on the number of threads.
  dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$tree" "$output/${package}_${version}_$deb_arch.deb" >/dev/null
}

awk -v version="$version" -v maintainer="$maintainer" -v today="$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)" \
  -f "$templates/changelog.awk" "$root/CHANGELOG.md" "$root/CHANGELOG.md" >"$folder/changelog"

take caisson usr/bin usr/libexec usr/share
data=$folder/caisson/usr/share
rm -rf "$folder/caisson/usr/libexec/caisson/caisson-server" "$data/caisson/systemd" "$data/caisson/apparmor" "$data/doc/caisson/LICENSE" \
  "$data/doc/caisson/CHANGELOG.md"
gzip -9n "$data"/man/man*/*
mkdir -p "$data/zsh/vendor-completions"
mv "$data/zsh/site-functions/_caisson" "$data/zsh/vendor-completions/"
rmdir "$data/zsh/site-functions"
# As an example, because it needs python3 and the package does not depend on that.
mkdir -p "$data/doc/caisson/examples"
mv "$data/caisson/seccomp/make_profile.py" "$data/doc/caisson/examples/"
put caisson "$root/packaging/apparmor/caisson" /etc/apparmor.d/caisson
libraries=$(shared_libraries caisson)
finish caisson "$libraries"

take caisson-server usr/libexec/caisson/caisson-server
for unit in service socket; do
  put caisson-server "$root/packaging/systemd/caisson.$unit" "/usr/lib/systemd/user/caisson.$unit"
  put caisson-server "$root/packaging/systemd/caisson-system.$unit" "/usr/lib/systemd/system/caisson.$unit"
done
put caisson-server "$templates/server.toml" /etc/caisson/server.toml
finish caisson-server ""

take libcaisson-dev usr/include usr/lib
put libcaisson-dev "$stage/usr/share/doc/caisson/NOTICE" /usr/share/doc/libcaisson-dev/NOTICE
"${CAISSON_CROSS:+$machine-linux-gnu-}strip" --strip-debug --enable-deterministic-archives --remove-section=.comment --remove-section=.note "$folder"/libcaisson-dev/usr/lib/libcaisson.a
# The dependencies: packages with the libraries that users of libcaisson.a must link.
libraries=
for name in $(sed -n 's/.*INTERFACE_LINK_LIBRARIES "\([^"]*\)".*/\1/p' "$folder/libcaisson-dev/usr/lib/cmake/caisson/caissonConfig.cmake" |
  tr ';' ' '); do
  case $name in *::*) continue ;; esac
  owner=$(dpkg-query --admindir="$database" -S "*/lib$name.a" | head -n 1 | cut -d: -f1)
  libraries="$libraries${libraries:+, }$owner"
done
finish libcaisson-dev "$libraries"
rm -rf "$folder"
