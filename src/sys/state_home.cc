#include "sys/state_home.h"

#include <cstdlib>

namespace caisson::sys {
namespace {

std::string absolute(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

std::string stateHome() {
  if (std::string home = absolute("CAISSON_HOME"); !home.empty()) return home;
  if (const std::string data = absolute("XDG_DATA_HOME"); !data.empty()) return data + "/caisson";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.local/share/caisson";
  return {};
}

}  // namespace caisson::sys
