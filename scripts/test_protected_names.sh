#!/bin/sh
# test_protected_names.sh [NAME...]: runs tools with planted files, as an ordinary user and without network, and compares
# what they execute with tests/security/protected/catalogue.jsonl. NAME selects tools or files.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" --optional names
exec python3 -B "$root/tests/security/protected/tools_test.py" "$@"
