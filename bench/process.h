// Starts programs in the cheapest way, so that the driver's own cost does not hide differences.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace bench {

struct Command {
  std::vector<std::string> argv;         ///< argv[0] is an absolute path
  std::string directory;                 ///< working directory; empty: the driver's
  std::vector<std::string> environment;  ///< "NAME=value"
};

double nowMs();

/// Starts by posix_spawn (vfork inside) with the streams on /dev/null; -1 on failure. Thread-safe.
pid_t start(const Command& command);

/// The wait status; -1 if `pid` is not our child.
int await(pid_t pid);

/// Start to end in milliseconds; nothing unless the program exited with 0.
std::optional<double> timeOnce(const Command& command);

struct Captured {
  int status = -1;  ///< exit status; 128+n for signal n; -1: not started
  std::string out, err;
};
Captured capture(const Command& command);

/// Returns an absolute path: `name` itself if it contains a slash, else the program in the system's directories.
std::optional<std::string> findProgram(const std::string& name);

/// The share of all processors that other programs use, observed while this one sleeps for a quarter of a second.
double busyElsewhere();

}  // namespace bench
