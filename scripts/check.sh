#!/bin/sh
# Runs all style checks; the exit status is 0 if all passed.
set -eu
. "$(dirname -- "$0")/lib.sh"
sh "$root/scripts/install_dependencies.sh" check
status=0
python3 "$root/scripts/check_layers.py" || status=1
python3 "$root/scripts/check_paths.py" || status=1
python3 "$root/scripts/check_printers.py" || status=1
python3 "$root/scripts/check_code.py" || status=1
sh "$root/scripts/check_style.sh" || status=1
python3 "$root/scripts/check_wording.py" || status=1
python3 "$root/scripts/check_conformance.py" || status=1
python3 "$root/scripts/check_versions.py" || status=1
exit $status
