#include "sys/home_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sys/state_home.h"

namespace caisson::sys {

std::vector<std::string> homeDirectories() {
  const char* variable = std::getenv("HOME");
  std::vector<std::string> homes;
  for (const std::string& named : {std::string(variable == nullptr ? "" : variable), homeFromPasswd(::getuid())}) {
    if (!named.starts_with('/')) continue;
    std::error_code problem;
    std::string home = std::filesystem::weakly_canonical(named, problem).string();
    if (problem) home = std::filesystem::path(named).lexically_normal().string();
    while (home.size() > 1 && home.ends_with('/')) home.pop_back();
    homes.push_back(std::move(home));
  }
  return homes;
}

bool holdsHome(const std::string& path) {
  if (path == "/") return true;
  return std::ranges::any_of(homeDirectories(),
                             [&](const std::string& home) { return home == path || home.starts_with(path + "/"); });
}

}  // namespace caisson::sys
