// Command-line options.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::string caisson = "build/caisson";
  std::vector<std::string> without_cgroup;   ///< `caisson run` arguments that switch cgroups off; empty: no such row
  std::string tools;                         ///< directory of floor, repeat and syscall_loop; default: the driver's
  std::map<std::string, std::string> peers;  ///< name -> path
  unsigned launches = 1500;                  ///< of each row
  double budget_seconds = 45;                ///< the launch table stops here, even before `launches`
  double throughput_seconds = 0.5;           ///< one stretch; three for each row and number in flight
  unsigned files = 50000;                    ///< in the tree for git
  unsigned batches = 8;                      ///< alternations between native and inside
  bool launch = true, throughput = true, memory = true, audit = true, work = true, growth = true;
  bool parts = false;  ///< launch the floor with each part of its root left out, and nothing else
  std::string json;
};

std::expected<Options, std::string> parseOptions(int argc, char** argv);
const char* usage();

}  // namespace bench
