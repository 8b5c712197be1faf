#!/bin/bash
# Runs in the machine, as root, until the machine is killed. Runs commands of an ordinary user and prints each after its
# client has returned, as "ACK <milliseconds since boot> <kind> <name>".
if [ "$(id -u)" = 0 ]; then
  mount -t ext4 /dev/vdc /mnt || exit 125
  mkdir -p /mnt/home /mnt/work
  chown 1000:1000 /mnt/home /mnt/work
  exec setpriv --reuid 1000 --regid 1000 --init-groups --inh-caps=-all \
    env CAISSON_HOME=/mnt/home HOME=/home/tester bash "$0"
fi
cd /mnt/work || exit 125
caisson=/job/bin/caisson
now() { read -r up _ </proc/uptime; echo "${up/./}0"; }
printf 'extends = "bash"\n[network]\nmode = "proxy"\nallowed_hosts = ["example.org"]\n' >/mnt/work/policy.toml
online=$($caisson session create --workspace /mnt/work --policy policy.toml) || exit 125
online=${online%%$'\n'*}
# A request that the egress denies; it is recorded also without a network.
request='proxy=${https_proxy#*//} proxy=${proxy%/}
exec 3<>"/dev/tcp/${proxy%:*}/${proxy##*:}" || exit 1
printf "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n" "$0" "$0" >&3
read -r answer <&3
case $answer in *" 403"*) ;; *) exit 1 ;; esac'
# Two concurrent writers, so that the kill can happen in any state of the log.
for writer in 1 2; do
  for ((i = 1; ; ++i)); do
    if [ $writer = 1 ]; then
      $caisson session exec "$online" -- echo "exec-$i" >/dev/null && echo "ACK $(now) exec exec-$i"
      name=refused-$i.example.net
      $caisson session exec "$online" -- bash -c "$request" "$name" 2>/dev/null && echo "ACK $(now) refused $name"
    else
      $caisson run --workspace :none -- echo "run-$i" >/dev/null && echo "ACK $(now) run run-$i"
      if ((i % 5 == 0)); then # bpf: an escape attempt, which is on the disk before anything else happens
        $caisson run --workspace :none --ro /job/bin/payload -- /job/bin/payload call "$(</job/bpf)" 99 0 "$i" \
          >/dev/null 2>&1
        echo "ACK $(now) escape $i"
      fi
    fi
  done &
done
wait
