// System calls that stand for one function of the C library. glibc and musl, their versions and the architectures make
// different ones: chmod() is chmod on x86_64, fchmodat on aarch64, and fchmodat2 with flags.
//
// A filter of our own that allows one of them must decide about all of them, or a function that works on one machine
// fails on another. Every member of a group does no more than the others with the same arguments.
#pragma once

#include <span>
#include <string_view>

namespace caisson::plan {

namespace siblings {
inline constexpr std::string_view kAccess[] = {"access", "faccessat", "faccessat2"};
inline constexpr std::string_view kMode[] = {"chmod", "fchmodat", "fchmodat2"};
inline constexpr std::string_view kOwner[] = {"chown", "fchownat", "lchown"};
inline constexpr std::string_view kOpen[] = {"open", "openat"};
inline constexpr std::string_view kStatus[] = {"fstat", "lstat", "newfstatat", "stat", "statx"};
inline constexpr std::string_view kReadLink[] = {"readlink", "readlinkat"};
inline constexpr std::string_view kRename[] = {"rename", "renameat", "renameat2"};
inline constexpr std::string_view kRemove[] = {"rmdir", "unlink", "unlinkat"};
inline constexpr std::string_view kDirectory[] = {"mkdir", "mkdirat"};
inline constexpr std::string_view kNode[] = {"mknod", "mknodat"};
inline constexpr std::string_view kLink[] = {"link", "linkat"};
inline constexpr std::string_view kSymlink[] = {"symlink", "symlinkat"};
inline constexpr std::string_view kTimes[] = {"futimesat", "utime", "utimensat", "utimes"};
inline constexpr std::string_view kDuplicate[] = {"dup2", "dup3"};
inline constexpr std::string_view kPipe[] = {"pipe", "pipe2"};
inline constexpr std::string_view kAccept[] = {"accept", "accept4"};
inline constexpr std::string_view kPoll[] = {"poll", "ppoll"};
inline constexpr std::string_view kSelect[] = {"pselect6", "select"};
inline constexpr std::string_view kWatch[] = {"epoll_pwait", "epoll_wait"};
inline constexpr std::string_view kClock[] = {"clock_gettime", "gettimeofday", "time"};
inline constexpr std::string_view kSleep[] = {"clock_nanosleep", "nanosleep"};
inline constexpr std::string_view kGroup[] = {"getpgid", "getpgrp"};
inline constexpr std::string_view kFork[] = {"clone", "clone3", "fork", "vfork"};
}  // namespace siblings

inline constexpr std::span<const std::string_view> kSiblings[] = {
    siblings::kAccess,   siblings::kMode,    siblings::kOwner,  siblings::kOpen,      siblings::kStatus,
    siblings::kReadLink, siblings::kRename,  siblings::kRemove, siblings::kDirectory, siblings::kNode,
    siblings::kLink,     siblings::kSymlink, siblings::kTimes,  siblings::kDuplicate, siblings::kPipe,
    siblings::kAccept,   siblings::kPoll,    siblings::kSelect, siblings::kWatch,     siblings::kClock,
    siblings::kSleep,    siblings::kGroup,   siblings::kFork,
};

}  // namespace caisson::plan
