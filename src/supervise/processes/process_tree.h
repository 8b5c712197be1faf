// Resource usage of a sandbox's processes, read from the host's /proc: for hosts without a usable cgroup.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/in_flight.h"

namespace caisson::supervise {

struct TreeUsage {
  std::uint64_t processes = 0;  ///< without the sandbox's pid 1
  std::uint64_t threads = 0;    ///< all of them, with the first one of each process
  std::uint64_t cpu_usec = 0;   ///< with pid 1; never decreases
  std::uint64_t memory = 0;     ///< private memory, and kernel memory of the processes
  std::uint64_t mapped = 0;     ///< shared memory that is mapped, of any kind
  std::uint64_t memfds = 0;     ///< unnamed shared memory behind descriptors, also in flight
};

/// Without the sandbox's pid 1.
struct TaskCounts {
  std::uint64_t processes = 0;
  std::uint64_t threads = 0;  ///< beside the first one of each process
};

struct DeletedFile {
  std::string path;  ///< inside the sandbox, when it still had a name; the kernel appends " (deleted)"
  std::uint64_t bytes = 0;
};

/// The tree below one process of ours. Each poll costs about 50 us per process.
///
/// Not counted: the time of a process that lives less than one interval and is reaped by the kernel unseen; memory that
/// no process shows: System V objects, which pid 1 counts; queued socket messages, which are charged per socket
/// instead; a memfd that is mapped but neither touched nor open.
class ProcessTree {
 public:
  explicit ProcessTree(pid_t init) : init_(init) {}

  /// Counts shared memory once for each process; if the sum exceeds `precise_above`, measures again and counts it once
  /// in all, which costs more.
  TreeUsage look(std::uint64_t precise_above);

  /// Counts processes and threads only, which costs a tenth of look().
  [[nodiscard]] TaskCounts countTasks() const;

  [[nodiscard]] pid_t init() const { return init_; }
  /// pid 1 and every process below it.
  [[nodiscard]] std::vector<pid_t> members() const;

  /// Files on disk that are deleted but still open somewhere in the tree. tmpfs files are left out.
  [[nodiscard]] std::vector<DeletedFile> deletedFiles() const;

 private:
  using Inode = std::pair<dev_t, ino_t>;
  struct InFlightUse {
    std::uint64_t kernel = 0, memfds = 0;
  };
  /// What is in flight in the queues of `sockets`, without the files of `elsewhere`.
  InFlightUse lookInFlight(std::span<const sys::SocketOf> sockets, const std::set<Inode>& elsewhere);

  pid_t init_;
  std::uint64_t cpu_seen_ = 0, cpu_lost_ = 0;
  std::map<Inode, std::uint64_t> in_flight_;  ///< memfds seen in flight, and their bytes
};

// Pure parsers of /proc texts.
struct ProcessTimes {
  std::uint64_t ticks = 0;  ///< own and those of children it has waited for
  std::uint64_t threads = 0;
};
/// From /proc/PID/stat; nullopt for any other text.
std::optional<ProcessTimes> parseProcessTimes(std::string_view stat);
/// The value of a line "Key:   123"; 0 if there is none.
std::uint64_t parseNumber(std::string_view text, std::string_view key);
/// The value of a line "Key:   123 kB", in bytes; 0 if there is none.
std::uint64_t parseKilobytes(std::string_view text, std::string_view key);

}  // namespace caisson::supervise
