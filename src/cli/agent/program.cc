#include "cli/agent/program.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "cli/options.h"
#include "plan/workspace.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

/// What a sandbox with the host's root shows.
constexpr std::array<std::string_view, 5> kSystem{"/usr", "/bin", "/sbin", "/lib", "/lib64"};

std::string lookUp(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  for (const std::string_view directory : split(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, ':')) {
    const std::string file = std::string(directory) + "/" + name;
    if (directory.starts_with('/') && ::access(file.c_str(), X_OK) == 0 && !fs::is_directory(file)) return file;
  }
  return {};
}

/// Whether showing it would show the user's files.
bool isTooMuch(const fs::path& directory) {
  std::error_code problem;
  const char* variable = std::getenv("HOME");
  const std::string home = variable == nullptr ? "" : fs::weakly_canonical(variable, problem).string();
  if (directory == directory.root_path() || directory.parent_path() == directory.root_path()) return true;
  if (home.empty()) return false;
  return plan::below(home, directory.string()) || directory == fs::path(home) / ".local";
}

/// Whether it is in a hidden directory of the home, such as ~/.name or ~/.local/share/name, where agents keep keys and
/// logs as well.
bool isHiddenInHome(const fs::path& directory) {
  std::error_code problem;
  const char* variable = std::getenv("HOME");
  const std::string home = variable == nullptr ? "" : fs::weakly_canonical(variable, problem).string();
  if (home.empty() || !plan::below(directory.string(), home)) return false;
  return (directory.string().substr(home.size()) + "/").find("/.") != std::string::npos;
}

std::vector<std::string> neededFor(const fs::path& program) {
  const std::string text = program.string();
  constexpr std::string_view kModules = "/node_modules/";
  if (const std::size_t at = text.find(kModules); at != std::string::npos)
    return {text.substr(0, at + kModules.size() - 1)};
  const fs::path directory = program.parent_path();
  const fs::path above = directory.parent_path();
  if (directory.filename() != "bin" || isTooMuch(above)) return {text};
  if (!isHiddenInHome(above)) return {above.string()};
  std::vector<std::string> needed{text};
  std::error_code problem;
  for (const char* part : {"lib", "lib64", "libexec", "share", "node_modules"})
    if (fs::is_directory(fs::symlink_status(above / part, problem))) needed.push_back((above / part).string());
  // A virtual environment of Python: its scripts start the interpreter in it.
  if (fs::is_regular_file(fs::symlink_status(above / "pyvenv.cfg", problem))) {
    needed.front() = directory.string();
    needed.push_back((above / "pyvenv.cfg").string());
  }
  return needed;
}

}  // namespace

Result<AgentProgram> findProgram(const std::string& name, const std::string& project) {
  const std::string found = lookUp(name);
  std::error_code problem;
  const fs::path real = found.empty() ? fs::path() : fs::canonical(found, problem);
  if (found.empty() || problem || ::access(real.c_str(), X_OK) != 0)
    return fail(usageError(name, "there is no such program", "name one that is in PATH, or its path"));
  AgentProgram program{.path = real.string(), .shown = {}};
  if (plan::below(program.path, project)) return program;
  for (const std::string_view system : kSystem)
    if (plan::below(program.path, std::string(system))) return program;
  program.shown = neededFor(real);
  return program;
}

}  // namespace caisson::cli
