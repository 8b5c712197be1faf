#!/usr/bin/env python3
"""Seccomp profiles for containers that caisson runs in.

  make_profile.py                     prints the complete profile for Docker, containerd and Kubernetes
  make_profile.py --extend FILE       prints the profile FILE (Podman's, Docker's) with the calls that caisson needs
  make_profile.py --check FILE        exits 1 if FILE differs from the output of make_profile.py

The default profiles of engines deny the calls that create a sandbox: new namespaces, mounts, pivot_root, sethostname.
These profiles allow them. The kernel still requires a capability for each of them, so a process can use them only in a
user namespace that it created.

The complete profile is an allowlist: a call in none of the lists below fails with EPERM. It uses only keys that Docker's
format and the OCI runtime specification share, so that one file works with every engine. It allows no 32-bit calls.
"""
import json
import sys

# Calls that caisson needs and engines deny.
NEEDED = {
    "namespaces": "clone clone3 setns unshare sethostname setdomainname",
    "mounts": "mount mount_setattr move_mount open_tree open_tree_attr fsconfig fsmount fsopen fspick pivot_root"
              " statmount listmount umount2 chroot",
    "confinement": "landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp prctl capget capset",
    "supervision": "close_range kill memfd_create openat2 pidfd_getfd pidfd_open pidfd_send_signal process_madvise"
                   " name_to_handle_at waitid",
}

# Calls that programs in a container use.
ORDINARY = {
    "files": "access chdir chmod chown close copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl"
             " epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 faccessat faccessat2"
             " fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync file_getattr"
             " file_setattr flock fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 inotify_add_watch"
             " inotify_init inotify_init1 inotify_rm_watch ioctl lchown link linkat lseek lstat mkdir mkdirat mknod"
             " mknodat newfstatat open openat pipe pipe2 poll ppoll pread64 preadv preadv2 pselect6 pwrite64 pwritev"
             " pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 rmdir select sendfile"
             " signalfd signalfd4 splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee"
             " timerfd_create timerfd_gettime timerfd_settime truncate umask unlink unlinkat utime utimensat utimes"
             " vmsplice write writev cachestat",
    "extended attributes": "fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr"
                           " listxattrat llistxattr lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat",
    "asynchronous i/o": "io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit",
    "memory": "brk get_mempolicy madvise map_shadow_stack membarrier memfd_secret mincore mlock mlock2 mlockall mmap"
              " mprotect mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect"
              " process_mrelease remap_file_pages",
    "processes": "arch_prctl execve execveat exit exit_group fork futex futex_requeue futex_wait futex_waitv futex_wake"
                 " get_robust_list get_thread_area getcpu getpgid getpgrp getpid getppid getpriority getrandom getrlimit"
                 " getrusage getsid gettid ioprio_get ioprio_set kcmp pause prlimit64 process_vm_readv process_vm_writev"
                 " ptrace restart_syscall rseq sched_get_priority_max sched_get_priority_min sched_getaffinity"
                 " sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr"
                 " sched_setparam sched_setscheduler sched_yield set_robust_list set_thread_area set_tid_address setpgid"
                 " setpriority setrlimit setsid sysinfo times uname vfork wait4 lsm_get_self_attr lsm_list_modules",
    "identity": "getegid geteuid getgid getgroups getresgid getresuid getuid setfsgid setfsuid setgid setgroups setregid"
                " setresgid setresuid setreuid setuid",
    "signals": "rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait"
               " rt_tgsigqueueinfo sigaltstack tgkill tkill",
    "time": "adjtimex alarm clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer time"
            " timer_create timer_delete timer_getoverrun timer_gettime timer_settime",
    "sockets": "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg"
               " sendmsg sendto setsockopt shutdown socketpair",
    "ipc": "mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl"
           " semget semop semtimedop shmat shmctl shmdt shmget",
}

# Denied calls, with the reason. The test requires every call of the kernel's tables to be in exactly one list.
REFUSED = {
    "replace or extend the kernel": "bpf create_module delete_module finit_module get_kernel_syms init_module"
                                    " kexec_file_load kexec_load query_module",
    "leave the container's file system": "fanotify_init fanotify_mark lookup_dcookie open_by_handle_at",
    "watch or slow down the machine": "acct perf_event_open quotactl quotactl_fd swapoff swapon syslog migrate_pages"
                                      " move_pages mbind set_mempolicy set_mempolicy_home_node",
    "set the machine's state": "clock_adjtime clock_settime ioperm iopl lsm_set_self_attr modify_ldt reboot"
                               " settimeofday vhangup",
    "keys of other containers": "add_key keyctl request_key",
    "kernel code with many past faults": "io_uring_enter io_uring_register io_uring_setup userfaultfd",
    "obsolete": "_sysctl afs_syscall getpmsg nfsservctl putpmsg security sysfs tuxcall uselib ustat vserver",
}

# Allowed for some arguments: (index, operation, value); one entry per alternative.
AF_ALG, AF_VSOCK = 38, 40
CONDITIONAL = {
    "socket": [[(0, "SCMP_CMP_LT", AF_ALG)], [(0, "SCMP_CMP_EQ", AF_ALG + 1)], [(0, "SCMP_CMP_GT", AF_VSOCK)]],
    # Linux, 32-bit Linux, both with UNAME26, and the query.
    "personality": [[(0, "SCMP_CMP_EQ", value)] for value in (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)],
}


def names(groups):
    return sorted(name for group in groups.values() for name in group.split())


def rule(calls, arguments=()):
    made = {"names": calls, "action": "SCMP_ACT_ALLOW"}
    if arguments:
        made["args"] = [{"index": index, "value": value, "op": operation} for index, operation, value in arguments]
    return made


def complete():
    rules = [rule(sorted(names(NEEDED) + names(ORDINARY)))]
    rules += [rule([name], arguments) for name, choices in sorted(CONDITIONAL.items()) for arguments in choices]
    return {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"], "syscalls": rules}


def extended(profile):
    """Returns the profile with caisson's calls allowed; its own rules for these calls are removed."""
    needed = set(names(NEEDED))
    rules = []
    for old in profile["syscalls"]:
        calls = old.get("names") or [old["name"]]
        left = [name for name in calls if name not in needed]
        if left:
            rules.append({**old, "names": left})
            rules[-1].pop("name", None)
    return {**profile, "syscalls": rules + [rule(sorted(needed))]}


def as_text(profile):
    return json.dumps(profile, indent=1) + "\n"


def main():
    if len(sys.argv) == 1:
        sys.stdout.write(as_text(complete()))
        return 0
    if len(sys.argv) == 3 and sys.argv[1] in ("--extend", "--check"):
        try:
            with open(sys.argv[2], encoding="utf-8") as file:
                text = file.read()
            if sys.argv[1] == "--check":
                return 0 if text == as_text(complete()) else 1
            sys.stdout.write(as_text(extended(json.loads(text))))
            return 0
        except (OSError, ValueError, KeyError) as error:
            print(f"make_profile.py: {sys.argv[2]}: {error}", file=sys.stderr)
            return 2
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
