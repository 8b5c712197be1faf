#include "base/syscall_arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/syscall_table.h"

namespace caisson {
namespace {

constexpr std::uint8_t kUnknown = 6;

// The calls of x86_64 and aarch64 by argument count: from the kernel's SYSCALL_DEFINEn, or the manual page for removed
// calls. preadv and pwritev have a fifth argument that 64-bit kernels ignore.
constexpr std::string_view kCallsByCount[] = {
    // 0
    "fork getegid geteuid getgid getpgrp getpid getppid gettid getuid inotify_init munlockall pause "
    "restart_syscall rseq_slice_yield rt_sigreturn sched_yield setsid sync uprobe uretprobe vfork vhangup",
    // 1
    "_sysctl acct adjtimex alarm brk chdir chroot close dup epoll_create epoll_create1 eventfd exit exit_group "
    "fchdir fdatasync fsync get_kernel_syms get_thread_area getpgid getsid inotify_init1 io_destroy iopl "
    "memfd_secret mlockall mq_unlink personality pipe pkey_free rmdir sched_get_priority_max "
    "sched_get_priority_min sched_getscheduler set_thread_area set_tid_address setfsgid setfsuid setgid setuid "
    "shmdt swapoff syncfs sysinfo time timer_delete timer_getoverrun times umask uname unlink unshare uselib "
    "userfaultfd",
    // 2
    "access arch_prctl capget capset chmod clock_adjtime clock_getres clock_gettime clock_settime clone3 creat "
    "create_module delete_module dup2 eventfd2 fanotify_init fchmod flock fremovexattr fsopen fstat fstatfs "
    "ftruncate getcwd getgroups getitimer getpriority getrlimit getrusage gettimeofday inotify_rm_watch io_setup "
    "io_uring_setup ioprio_get kill landlock_restrict_self link listen lremovexattr lstat memfd_create mkdir "
    "mlock mq_notify msgget munlock munmap nanosleep pidfd_open pipe2 pivot_root pkey_alloc process_mrelease "
    "removexattr rename rt_sigpending rt_sigsuspend sched_getparam sched_rr_get_interval sched_setparam "
    "set_robust_list setdomainname setgroups sethostname setns setpgid setregid setreuid setrlimit settimeofday "
    "shutdown sigaltstack stat statfs swapon symlink timer_gettime timerfd_create timerfd_gettime tkill truncate "
    "umount2 ustat utime utimes",
    // 3
    "accept bind bpf chown close_range connect dup3 execve faccessat fchmodat fchown fcntl finit_module "
    "flistxattr fsmount fspick futimesat get_robust_list getcpu getdents getdents64 getpeername getrandom "
    "getresgid getresuid getsockname init_module inotify_add_watch io_cancel io_submit ioctl ioperm ioprio_set "
    "landlock_create_ruleset lchown listxattr llistxattr lookup_dcookie lseek lsm_list_modules madvise "
    "map_shadow_stack membarrier mincore mkdirat mknod mlock2 modify_ldt mprotect mq_getsetattr mseal msgctl "
    "msync nfsservctl open open_by_handle_at open_tree pidfd_getfd poll read readahead readlink readv recvmsg "
    "rt_sigqueueinfo sched_getaffinity sched_setaffinity sched_setattr sched_setscheduler seccomp security semget "
    "semop sendmsg set_mempolicy setitimer setpriority setresgid setresuid shmat shmctl shmget signalfd socket "
    "symlinkat sysfs syslog tgkill timer_create tuxcall unlinkat write writev",
    // 4
    "accept4 cachestat clock_nanosleep epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old faccessat2 fadvise64 "
    "fallocate fchmodat2 fgetxattr futex_requeue futex_wake getxattr io_uring_register kexec_load "
    "landlock_add_rule lgetxattr listmount listns lsm_get_self_attr lsm_set_self_attr migrate_pages mknodat "
    "mq_open msgsnd newfstatat openat openat2 pidfd_send_signal pkey_mprotect pread64 preadv prlimit64 ptrace "
    "pwrite64 pwritev quotactl quotactl_fd readlinkat reboot removexattrat renameat request_key rseq rt_sigaction "
    "rt_sigprocmask rt_sigtimedwait rt_tgsigqueueinfo sched_getattr semctl semtimedop sendfile sendmmsg "
    "set_mempolicy_home_node signalfd4 socketpair statmount sync_file_range tee timer_settime timerfd_settime "
    "utimensat vmsplice wait4",
    // 5
    "add_key afs_syscall clone execveat fanotify_mark fchownat file_getattr file_setattr fsconfig fsetxattr "
    "futex_waitv get_mempolicy getpmsg getsockopt io_getevents kcmp kexec_file_load keyctl linkat listxattrat "
    "lsetxattr mount mount_setattr move_mount mq_timedreceive mq_timedsend mremap msgrcv name_to_handle_at "
    "open_tree_attr perf_event_open ppoll prctl process_madvise putpmsg query_module recvmmsg remap_file_pages "
    "renameat2 select setsockopt setxattr statx vserver waitid",
    // 6
    "copy_file_range epoll_pwait epoll_pwait2 futex futex_wait getxattrat io_pgetevents io_uring_enter mbind mmap "
    "move_pages preadv2 process_vm_readv process_vm_writev pselect6 pwritev2 recvfrom sendto setxattrat splice",
};

constexpr void forEachCall(auto&& visit) {
  for (std::size_t count = 0; count < std::size(kCallsByCount); ++count) {
    std::string_view rest = kCallsByCount[count];
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      visit(name, static_cast<std::uint8_t>(count));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
}

constexpr auto kCounts = [] {
  std::array<std::uint8_t, 512> counts{};
  counts.fill(kUnknown);
  forEachCall([&](std::string_view name, std::uint8_t count) {
    if (const auto number = syscall_table::numberOf(name)) counts[static_cast<std::size_t>(*number)] = count;
  });
  return counts;
}();

}  // namespace

std::size_t syscallArgumentCount(int number) {
  const auto index = static_cast<std::size_t>(number);
  return index < kCounts.size() ? kCounts[index] : kUnknown;
}

bool isSyscallArgumentCountKnown(std::string_view name) {
  bool known = false;
  forEachCall([&](std::string_view listed, std::uint8_t) { known = known || listed == name; });
  return known;
}

}  // namespace caisson
