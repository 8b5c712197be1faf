#!/bin/bash
# One short row for every change: an ordinary user on cgroup v2 and an older kernel. Runs only if the images exist
# (make test-vm creates them), so that checking a change does not start a download.
set -euo pipefail
source "$(dirname "$0")/lib.sh"
arch=$(dpkg --print-architecture)
if [ ! -e "$VM_HOME/images/$arch/6.1/initrd" ]; then
  echo "skipped: no images in $VM_HOME; make test-vm creates them"
  exit 0
fi
export CAISSON_VM_SECONDS=120
export CAISSON_VM_FILTER='*StopsAt*/anonymous:*StopsAt*/processes:*StopsAt*/cpu_of_the_tree:*StopsAt*/overlay_on_disk'
exec bash "$VM_SOURCE/test.sh" limits "6.1,$arch,tester,delegated"
