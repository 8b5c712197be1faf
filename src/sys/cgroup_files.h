// Reading and writing the kernel's cgroup files, and the pure parsers of their texts.
//
// Everything is relative to an open directory: a name is resolved once, when the directory is made or found.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

namespace caisson::sys {

/// The whole file, nothing when it can't be read (and errno says why).
std::optional<std::string> readAt(int directory, const char* file);
/// One write, which must take all of it: the kernel parses each write by itself. 0 or an errno.
int writeAt(int directory, const char* file, std::string_view value);
/// A directory to work from, never through a final symbolic link.
Fd openDirectoryAt(int parent, const char* name);
/// Pids in cgroup.procs; those outside our pid namespace read as 0.
std::optional<std::vector<pid_t>> membersOf(int directory);
/// Whether `pid` is in `directory` itself.
bool holds(int directory, pid_t pid);
/// SIGKILL to the members of one directory of ours; how many are left. A number read from cgroup.procs may be another
/// process's by the time we use it: one that is still listed after a pidfd to it was opened is the pidfd's process.
std::size_t killMembers(int directory);
/// Whether nobody, or nobody but this process, is in `directory` itself.
bool holdsOnly(int directory, pid_t self);

/// One line of /proc/<pid>/cgroup.
struct OwnCgroup {
  std::string controllers;  ///< "cpu,cpuacct"; "" for v2
  std::string path;
};
std::vector<OwnCgroup> parseOwnCgroups(std::string_view text);

/// Whether `word` is in a list ("memory pids", "cpu,cpuacct").
bool listHas(std::string_view list, std::string_view word, char separator);
CgroupControllers parseControllers(std::string_view list, char separator);
/// "memory, pids".
std::string namesOf(const CgroupControllers& controllers);
CgroupControllers operator&(const CgroupControllers& a, const CgroupControllers& b);
CgroupControllers operator|(const CgroupControllers& a, const CgroupControllers& b);
CgroupControllers operator-(const CgroupControllers& a, const CgroupControllers& b);
bool any(const CgroupControllers& controllers);

/// "123\n"; nothing for "max" and for what is no number.
std::optional<std::uint64_t> parseCount(std::string_view text);
/// The value of one line "key value".
std::optional<std::uint64_t> parseKeyed(std::string_view text, std::string_view key);
/// The sum of "key=value" over the devices of io.stat.
std::uint64_t sumIoStat(std::string_view text, std::string_view key);
/// The sum of "8:0 Read 4096" over the devices of a blkio file.
std::uint64_t sumBlkio(std::string_view text, std::string_view operation);

/// "0-2,5", sorted and without doubles, as the kernel prints it.
std::string formatCpuList(std::vector<std::uint32_t> cpus);

inline constexpr std::uint64_t kCpuPeriodUsec = 100'000;
/// Microseconds per period. The kernel takes no less than a millisecond. Nothing for what is no share.
std::optional<std::uint64_t> cpuQuota(double cpus);

/// `caisson-<pid>-<start time>-<world>-<id>`. Pid and start time (clock ticks since boot) name one process for ever,
/// but mean something only in the same pid and time namespaces, which `world` tells apart: one container must not take
/// another's live sandboxes for abandoned ones.
struct CgroupName {
  pid_t pid = -1;
  std::uint64_t start = 0;  ///< 0: not known
  std::uint64_t world = 0;
  std::string id;
};
std::string formatCgroupName(const CgroupName& name);
std::optional<CgroupName> parseCgroupName(std::string_view text);
/// Our own, without an id.
CgroupName ownCgroupName();
/// Letters, digits, `_`, `-`, `.`, at most 128, and not the leaf's.
bool isCgroupId(std::string_view id);
/// The id of the leaf that we move ourselves into.
inline constexpr std::string_view kSupervisorLeaf = "supervisor";

/// Fields 1 and 22 of /proc/<pid>/stat; the name in field 2 may hold anything.
struct ProcessStart {
  pid_t pid = -1;
  std::uint64_t ticks = 0;
};
std::optional<ProcessStart> parseProcessStart(std::string_view stat);
/// Whether the maker of a directory of our own world is gone. In doubt: no.
bool makerIsGone(const CgroupName& name);

}  // namespace caisson::sys
