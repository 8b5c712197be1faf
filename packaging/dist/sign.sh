#!/bin/sh
# sign.sh FILE...: writes the Ed25519 signature of each FILE to FILE.sig. sign.sh --public OUT: writes the public key.
# The key is CAISSON_SIGNING_KEY, or ~/.config/caisson/signing.key, which is created on first use.
# To verify a signature: openssl pkeyutl -verify -pubin -inkey caisson-signing.pub -rawin -in FILE -sigfile FILE.sig
set -eu
key=${CAISSON_SIGNING_KEY:-}
if [ -z "$key" ]; then
  key=${XDG_CONFIG_HOME:-${HOME:?HOME is not set; name a key with CAISSON_SIGNING_KEY}/.config}/caisson/signing.key
  if [ ! -e "$key" ]; then
    mkdir -p "${key%/*}"
    (umask 077 && openssl genpkey -algorithm ed25519 -out "$key")
    echo "caisson: created the signing key $key" >&2
  fi
fi
if [ "$1" = --public ]; then
  openssl pkey -in "$key" -pubout -out "$2"
  exit 0
fi
for file in "$@"; do
  openssl pkeyutl -sign -rawin -inkey "$key" -in "$file" -out "$file.sig"
done
