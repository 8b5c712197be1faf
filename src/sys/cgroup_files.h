// Reads and writes the kernel's cgroup files; pure parsers for their content.
//
// All paths are relative to an open directory: a name is resolved once, when the directory is made or found.
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

/// The whole file; nullopt with errno set if it cannot be read.
std::optional<std::string> readAt(int directory, const char* file);
/// One write for all of `value`: the kernel parses each write separately. Returns 0 or an errno.
int writeAt(int directory, const char* file, std::string_view value);
/// Opens a directory (O_PATH); does not follow a final symbolic link. Invalid with errno set on failure.
Fd openDirectoryAt(int parent, const char* name);
/// Pids in cgroup.procs; those outside our pid namespace read as 0. nullopt with errno set if it cannot be read.
std::optional<std::vector<pid_t>> membersOf(int directory);
/// Whether `pid` is in `directory` itself. False if that cannot be read.
bool holds(int directory, pid_t pid);
/// Sends SIGKILL to the members of one of our directories, except this process and pid 1. Returns how many were listed
/// just before the signals, so 0 means that none was left (or that the list cannot be read). A pid may be reused by the
/// time it is signalled, so a pidfd is opened and the pid must still be listed after that.
std::size_t killMembers(int directory);
/// Whether `directory` itself holds no process other than `self`; -1: none at all. False if that cannot be read.
bool holdsOnly(int directory, pid_t self);

/// One line of /proc/<pid>/cgroup.
struct OwnCgroup {
  std::string controllers;  ///< "cpu,cpuacct"; "" for v2
  std::string path;
};
/// The lines of /proc/<pid>/cgroup; malformed ones are skipped.
std::vector<OwnCgroup> parseOwnCgroups(std::string_view text);

/// Whether `word` is an element of a list ("memory pids", "cpu,cpuacct").
bool listHas(std::string_view list, std::string_view word, char separator);
/// Unknown names are ignored; `blkio` counts as io.
CgroupControllers parseControllers(std::string_view list, char separator);
/// "memory, pids".
std::string namesOf(const CgroupControllers& controllers);
CgroupControllers operator&(const CgroupControllers& a, const CgroupControllers& b);
CgroupControllers operator|(const CgroupControllers& a, const CgroupControllers& b);
/// Those of `a` that are not in `b`.
CgroupControllers operator-(const CgroupControllers& a, const CgroupControllers& b);
bool any(const CgroupControllers& controllers);

/// Parses "123" with or without a line end; nullopt for "max" and invalid numbers.
std::optional<std::uint64_t> parseCount(std::string_view text);
/// The value of the line "key value"; nullopt if there is none.
std::optional<std::uint64_t> parseKeyed(std::string_view text, std::string_view key);
/// The sum of "key=value" over the devices of io.stat.
std::uint64_t sumIoStat(std::string_view text, std::string_view key);
/// The sum of "8:0 Read 4096" over the devices of a blkio file.
std::uint64_t sumBlkio(std::string_view text, std::string_view operation);

/// "0-2,5", sorted and without duplicates, in the kernel's format.
std::string formatCpuList(std::vector<std::uint32_t> cpus);

inline constexpr std::uint64_t kCpuPeriodUsec = 100'000;
/// CPU time per kCpuPeriodUsec, in microseconds; at least the kernel's minimum of a millisecond. nullopt for an invalid
/// share.
std::optional<std::uint64_t> cpuQuota(double cpus);

/// `caisson-<pid>-<start time>-<world>-<id>`. Pid and start time (clock ticks since boot) identify a process uniquely,
/// but only within its pid and time namespaces, which `world` identifies: one container must not treat another's live
/// sandboxes as abandoned.
struct CgroupName {
  pid_t pid = -1;
  std::uint64_t start = 0;  ///< 0: unknown
  std::uint64_t world = 0;
  std::string id;
};
std::string formatCgroupName(const CgroupName& name);
/// nullopt for a directory that caisson did not name.
std::optional<CgroupName> parseCgroupName(std::string_view text);
/// The name for this process, without an id.
CgroupName ownCgroupName();
/// Letters, digits, `_`, `-`, `.`, 1 to 128 of them, and not kSupervisorLeaf.
bool isCgroupId(std::string_view id);
/// The id of the leaf that this process moves itself into.
inline constexpr std::string_view kSupervisorLeaf = "supervisor";

/// Fields 1 and 22 of /proc/<pid>/stat; the name in field 2 may contain any character.
struct ProcessStart {
  pid_t pid = -1;
  std::uint64_t ticks = 0;
};
/// nullopt if `stat`, the content of that file, is malformed.
std::optional<ProcessStart> parseProcessStart(std::string_view stat);
/// Whether the maker of a directory is gone. False if unsure. The caller checks that `world` is our own.
bool makerIsGone(const CgroupName& name);

}  // namespace caisson::sys
