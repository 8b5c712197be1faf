#!/bin/bash
# selinux.sh: tests isolation.selinux_label on a kernel with SELinux, in an emulated machine of this architecture. The
# payload of a run and of a session's command has the label, and a label that is not in the loaded policy is an error.
# CONFORMS("R-LEVEL-16");
set -euo pipefail
source "$(dirname "$0")/lib.sh"
source_root=$(cd "$VM_SOURCE/../.." && pwd)
arch=$(dpkg --print-architecture)
if [ ! -e "$VM_HOME/images/$arch/6.12/initrd" ]; then bash "$VM_SOURCE/build.sh" "$arch" 6.12; fi
ninja -C "$source_root/build" caisson >&2
work=$(mktemp -d "${TMPDIR:-/tmp}/caisson-selinux.XXXXXX")
trap 'rm -rf "$work"' EXIT
fetch_closure bookworm "$arch" "$work/packages" secilc
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/tools"; done

# A policy of two types. It is permissive, because the permissions of a type are not tested here.
sids="kernel security unlabeled fs file file_labels init any_socket port netif netmsg node igmp_packet icmp_socket tcp_socket
  sysctl_modprobe sysctl sysctl_fs sysctl_kernel sysctl_net sysctl_net_unix sysctl_vm sysctl_dev kmod policy scmp_packet devnull"
{
  cat <<CIL
(handleunknown allow)
(mls false)
(policycap nnp_nosuid_transition)
(class security (load_policy setenforce))
(class process (fork transition sigchld sigkill sigstop signull signal ptrace getsched setsched getsession getpgid setpgid
  getcap setcap share getattr setexec setfscreate noatsecure siginh setrlimit rlimitinh dyntransition setcurrent execmem
  execstack execheap setkeycreate setsockcreate getrlimit))
(class process2 (nnp_transition nosuid_transition))
(classorder (security process process2))
(sensitivity s0) (sensitivityorder (s0))
(user u) (role r) (userrole u r) (userlevel u (s0)) (userrange u ((s0) (s0)))
(type kernel_t) (type payload_t) (roletype r kernel_t) (roletype r payload_t)
(allow kernel_t kernel_t (process (fork setexec)))
(allow kernel_t payload_t (process (transition)))
CIL
  for sid in $sids; do echo "(sid $sid) (sidcontext $sid (u r kernel_t ((s0) (s0))))"; done
  echo "(sidorder ("$sids"))"
} >"$work/policy.cil"
libraries=$(find "$work/tools" -name 'libsepol.so.*' -printf '%h\n' -quit)
LD_LIBRARY_PATH=$libraries "$work/tools/usr/bin/secilc" -M false -c 33 -o "$work/policy" -f /dev/null "$work/policy.cil"

mkdir "$work/job"
cp "$source_root/build/caisson" "$work/policy" "$work/job/"
cat >"$work/job/check.sh" <<'INSIDE'
set -eu
cd /job
mount -t selinuxfs none /sys/fs/selinux
dd if=policy of=/sys/fs/selinux/load bs=1M status=none
mkdir -m 777 /tmp/state
printf "extends = 'bash'\nisolation.selinux_label = 'u:r:payload_t'\n" >/tmp/known.toml
printf "extends = 'bash'\nisolation.selinux_label = 'u:r:other_t'\n" >/tmp/unknown.toml
expect() { # WHAT GOT WANTED
  if [ "$2" != "$3" ]; then echo "$user: $1 is \"$2\", expected \"$3\""; exit 1; fi
}
label() { "$@" | tr -d '\0\n'; }
for user in root tester; do
  as="setpriv --reuid $user --regid $user --init-groups env HOME=/tmp/state/$user CAISSON_HOME=/tmp/state/$user/caisson"
  $as mkdir /tmp/state/$user
  for level in full process; do
    expect "the label of a run at level $level" \
      "$(label $as ./caisson run --level $level --workspace :none --policy /tmp/known.toml -- cat /proc/self/attr/current)" \
      u:r:payload_t
  done
  expect "the label without the key" "$(label $as ./caisson run --workspace :none -- cat /proc/self/attr/current)" u:r:kernel_t
  id=$($as ./caisson session create --workspace :none --policy /tmp/known.toml)
  expect "the label of a session's command" "$(label $as ./caisson session exec "$id" -- cat /proc/self/attr/current)" \
    u:r:payload_t
  $as ./caisson session destroy "$id"
  status=0
  $as ./caisson run --workspace :none --policy /tmp/unknown.toml -- echo ran >/tmp/out 2>/tmp/err || status=$?
  expect "the status for a label that is not known" "$status" 125
  expect "its output" "$(cat /tmp/out)" ""
  grep -q 'SELinux does not accept the label "u:r:other_t"' /tmp/err
done
echo "selinux: the label is applied, and an unknown label is an error"
INSIDE
bash "$VM_SOURCE/run.sh" -a "$arch" -k 6.12 -u root -A "lsm=landlock,lockdown,yama,selinux selinux=1 enforcing=0" \
  -d "$work/job" -t 280 "sh /job/check.sh"
