#!/bin/bash
# Runs in the next machine with the same disk: reads the log, and checks whether it accepts new events.
mount -t ext4 /dev/vdc /mnt || exit 125
exec setpriv --reuid 1000 --regid 1000 --init-groups --inh-caps=-all env CAISSON_HOME=/mnt/home HOME=/home/tester bash -c '
  /job/bin/caisson audit verify >/job/out/verify 2>&1
  echo $? >/job/out/verify.status
  /job/bin/caisson audit show --json >/job/out/events
  /job/bin/caisson run --workspace :none -- echo afterwards >/job/out/afterwards 2>&1
  /job/bin/caisson audit show --json >/job/out/events.after
  /job/bin/caisson audit verify >/job/out/verify.after 2>&1
  echo $? >/job/out/verify.after.status'
