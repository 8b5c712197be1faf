#include "cli/agent/program.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "cli/options.h"
#include "plan/workspace.h"
#include "sys/state_home.h"

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

/// The homes of this user, without links: HOME may name another directory than the user's entry.
std::vector<std::string> homes() {
  std::vector<std::string> list;
  const char* variable = std::getenv("HOME");
  for (const std::string& home : {std::string(variable == nullptr ? "" : variable), sys::homeFromPasswd(::getuid())}) {
    std::error_code problem;
    if (home.starts_with('/')) list.push_back(fs::weakly_canonical(home, problem).string());
  }
  std::erase(list, "");
  std::erase(list, "/");
  return list;
}

/// Whether showing it would show the user's files.
bool isTooMuch(const fs::path& directory) {
  if (directory == directory.root_path() || directory.parent_path() == directory.root_path()) return true;
  return std::ranges::any_of(homes(), [&](const std::string& home) {
    return plan::below(home, directory.string()) || directory == fs::path(home) / ".local";
  });
}

bool isInHome(const fs::path& path) {
  return std::ranges::any_of(homes(), [&](const std::string& home) { return plan::below(path.string(), home); });
}

/// The path with the links of its last part followed, not those of directories on the way.
fs::path followLast(fs::path file) {
  constexpr int kMaxLinks = 40;
  std::error_code problem;
  file = fs::absolute(file, problem).lexically_normal();
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(file, problem)); ++i)
    file = (file.parent_path() / fs::read_symlink(file, problem)).lexically_normal();
  return file;
}

/// Whether a program is in the home, where agents and users keep keys, logs and projects beside it; also where a
/// directory of the home is a link to another place.
bool isProgramOfHome(const std::string& found, const fs::path& real) {
  if (isInHome(real)) return true;
  // The name of the home may have links, too.
  const char* home = std::getenv("HOME");
  const fs::path file = followLast(found);
  return isInHome(file) ||
         (home != nullptr && *home == '/' && plan::below(file.string(), fs::path(home).lexically_normal().string()));
}

std::vector<std::string> neededFor(const fs::path& program, bool in_home) {
  const std::string text = program.string();
  constexpr std::string_view kModules = "/node_modules/";
  if (const std::size_t at = text.find(kModules); at != std::string::npos)
    return {text.substr(0, at + kModules.size() - 1)};
  const fs::path directory = program.parent_path();
  const fs::path above = directory.parent_path();
  if (directory.filename() != "bin" || isTooMuch(above)) return {text};
  if (!in_home) return {above.string()};
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
  program.shown = neededFor(real, isProgramOfHome(found, real));
  return program;
}

}  // namespace caisson::cli
