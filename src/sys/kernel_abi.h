// Kernel interfaces newer than the headers of the oldest build system (Linux 6.1): numbers and structures only, named
// as in the kernel.
#pragma once

#include <linux/types.h>
#include <sys/syscall.h>

namespace caisson::sys {

// Landlock, with the ABI version that introduced each right.
inline constexpr __u64 kFsExecute = 1ULL << 0;
inline constexpr __u64 kFsWriteFile = 1ULL << 1;
inline constexpr __u64 kFsReadFile = 1ULL << 2;
inline constexpr __u64 kFsReadDir = 1ULL << 3;
inline constexpr __u64 kFsRemoveDir = 1ULL << 4;
inline constexpr __u64 kFsRemoveFile = 1ULL << 5;
inline constexpr __u64 kFsMakeChar = 1ULL << 6;
inline constexpr __u64 kFsMakeDir = 1ULL << 7;
inline constexpr __u64 kFsMakeReg = 1ULL << 8;
inline constexpr __u64 kFsMakeSock = 1ULL << 9;
inline constexpr __u64 kFsMakeFifo = 1ULL << 10;
inline constexpr __u64 kFsMakeBlock = 1ULL << 11;
inline constexpr __u64 kFsMakeSym = 1ULL << 12;   // ABI 1 up to here
inline constexpr __u64 kFsRefer = 1ULL << 13;     // ABI 2
inline constexpr __u64 kFsTruncate = 1ULL << 14;  // ABI 3
inline constexpr __u64 kNetBindTcp = 1ULL << 0;   // ABI 4
inline constexpr __u64 kNetConnectTcp = 1ULL << 1;
inline constexpr __u64 kFsIoctlDev = 1ULL << 15;        // ABI 5
inline constexpr __u64 kScopeAbstractUnix = 1ULL << 0;  // ABI 6
inline constexpr __u64 kScopeSignal = 1ULL << 1;

inline constexpr unsigned kCloseRangeCloexec = 1U << 2;

inline constexpr __u32 kLandlockCreateRulesetVersion = 1U << 0;
inline constexpr int kLandlockRulePathBeneath = 1;

struct LandlockRulesetAttr {
  __u64 handled_access_fs;
  __u64 handled_access_net;
  __u64 scoped;
};

struct [[gnu::packed]] LandlockPathBeneathAttr {
  __u64 allowed_access;
  __s32 parent_fd;
};

struct OpenHow {
  __u64 flags;
  __u64 mode;
  __u64 resolve;
};

inline constexpr __u64 kResolveNoXdev = 0x01;
inline constexpr __u64 kResolveNoMagiclinks = 0x02;
inline constexpr __u64 kResolveNoSymlinks = 0x04;
inline constexpr __u64 kResolveBeneath = 0x08;
inline constexpr __u64 kResolveInRoot = 0x10;

struct CloneArgs {
  __u64 flags;
  __u64 pidfd;
  __u64 child_tid;
  __u64 parent_tid;
  __u64 exit_signal;
  __u64 stack;
  __u64 stack_size;
  __u64 tls;
  __u64 set_tid;
  __u64 set_tid_size;
  __u64 cgroup;
};

inline constexpr __u64 kCloneClearSighand = 0x100000000ULL;
inline constexpr __u64 kCloneIntoCgroup = 0x200000000ULL;
inline constexpr __u64 kCloneNewTime = 0x00000080ULL;

// seccomp user notification
inline constexpr __u32 kSeccompNewListener = 1U << 3;
inline constexpr __u32 kSeccompWaitKillable = 1U << 5;  // Linux 5.19

// pidfd
inline constexpr int kSoPeerPidfd = 77;                          // Linux 6.5
inline constexpr unsigned long kPidfdGetUserNamespace = 0xff09;  // Linux 6.11; the argument must be 0

inline constexpr __u32 kCapabilityVersion3 = 0x20080522;

}  // namespace caisson::sys
