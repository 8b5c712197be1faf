#!/bin/sh
# booted.sh USER: runs in the booted machine, as root: installs the packages, uses them as USER, removes them.
set -eu
user=$1
cat /etc/debian_version
uname -rm
profiles=/sys/kernel/security/apparmor/profiles
mount -t securityfs none /sys/kernel/security
if [ -d /job/apparmor ]; then dpkg --install /job/apparmor/*.deb; fi
dpkg --install /job/*.deb
if [ -d /job/apparmor ]; then grep '^caisson (unconfined)' "$profiles"; fi
# A delegated cgroup, as systemd creates for users.
group=/sys/fs/cgroup/user-1000
mkdir -p "$group/session"
for controller in $(cat "$group/cgroup.controllers"); do echo "+$controller" >"$group/cgroup.subtree_control"; done
chown "$user:" "$group" "$group/cgroup.procs" "$group/cgroup.threads" "$group/cgroup.subtree_control" "$group/session" \
  "$group/session/cgroup.procs"
sh -c 'echo $$ >"$0/session/cgroup.procs" && exec setpriv --reuid "$1" --regid "$1" --init-groups --inh-caps=-all \
  env -i HOME="/home/$1" PATH=/usr/local/bin:/usr/bin:/bin sh /job/booted_user.sh' "$group" "$user"
dpkg --purge caisson-server caisson
if grep '^caisson ' "$profiles"; then exit 1; fi
left=$(find / -xdev \( -path /proc -o -path /sys -o -path /job -o -path /home -o -path /tmp -o -path /run \) -prune -o -name '*caisson*' -print)
if [ -n "$left" ]; then
  echo "left after removal: $left"
  exit 1
fi
echo "booted: passed"
