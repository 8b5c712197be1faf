# Creates the tree that the npm package, the wheel and the image contain; sourced after lib.sh, POSIX sh. Exports
# `portable`, its directory, which is a prefix (bin, libexec, share) with a manifest.
portable=$(scratch portable)
export portable
python3 -B "$root/packaging/dist/portable.py" "$stage/usr" "$portable" || die "the installed tree is not complete: $stage"
make_manifest "$portable" MANIFEST
