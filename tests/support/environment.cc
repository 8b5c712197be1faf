#include "support/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "support/run.h"

namespace caisson::test {
namespace {

std::string fromEnvironment(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

std::optional<std::string> reasonAgainstFullIsolation() {
  const RunOutput output = runCaisson({"run", "--level", "full", "--workspace", ":none", "--", "/bin/true"});
  if (output.exit_status == 0) return std::nullopt;
  return "full isolation is not available here: " + output.describe();
}

/// Whether every user can execute it.
bool isOpenToAll(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || (status.st_mode & 0005) != 0005) return false;
  for (std::size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    if (::stat(path.substr(0, slash).c_str(), &status) != 0 || (status.st_mode & 0001) == 0) return false;
  }
  return true;
}

/// Root's sandboxes run as another user, who cannot enter /root, for example: makes a copy that lasts as long as this
/// process.
std::string openToAll(const std::string& path) {
  if (isOpenToAll(path)) return path;
  static std::filesystem::path directory;
  char name[] = "/tmp/caisson-payload-XXXXXX";
  if (::mkdtemp(name) == nullptr || ::chmod(name, 0755) != 0) return path;
  directory = name;
  std::atexit([] { std::filesystem::remove_all(directory); });
  const std::filesystem::path copy = directory / "payload";
  std::error_code failed;
  std::filesystem::copy_file(path, copy, failed);
  return failed || ::chmod(copy.c_str(), 0755) != 0 ? path : copy.string();
}

}  // namespace

std::string caissonBinary() { return fromEnvironment("CAISSON_BIN", CAISSON_BUILT_BINARY); }

std::string payloadPath() {
  static const std::string path = openToAll(fromEnvironment("CAISSON_PAYLOAD", CAISSON_BUILT_PAYLOAD));
  return path;
}

std::string builtProgram(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return path;
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? path : (own.parent_path() / std::filesystem::path(path).filename()).string();
}

std::vector<std::string> payload(std::vector<std::string> verb_and_arguments) {
  verb_and_arguments.insert(verb_and_arguments.begin(), payloadPath());
  return verb_and_arguments;
}

std::string sourceFile(const std::string& relative) {
  return fromEnvironment("CAISSON_SOURCE_DIR", CAISSON_SOURCE_ROOT) + "/" + relative;
}

bool runsAsRoot() { return geteuid() == 0; }

bool fullIsolationAvailable(std::string* why) {
  static const std::optional<std::string> reason = reasonAgainstFullIsolation();
  if (reason && why != nullptr) *why = *reason;
  return !reason;
}

int stress() {
  const char* wanted = std::getenv("CAISSON_STRESS");
  return std::max(1, wanted == nullptr ? 1 : std::atoi(wanted));
}

int slowness() {
  const char* factor = std::getenv("CAISSON_TEST_SLOWNESS");
  return std::max(1, factor == nullptr ? 1 : std::atoi(factor));
}

bool mustRun() {
  const std::string value = fromEnvironment("CAISSON_MUST_RUN", "");
  return !value.empty() && value != "0";
}

bool hasProgram(const std::string& name) {
  const std::string path = fromEnvironment("PATH", "/usr/local/bin:/usr/bin:/bin");
  std::string_view rest = path;
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace caisson::test
