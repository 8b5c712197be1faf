#include "cli/companion.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cli/output.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

/// In libexec, as it is installed, or beside caisson, as it is built. libexec is first: `caisson self verify` knows
/// every file there, while a directory of programs may get new ones.
std::string companionPath(const fs::path& directory, std::string_view name) {
  for (const fs::path& path :
       {directory / "../libexec/caisson" / name, directory / name, fs::path(CAISSON_INSTALLED_COMPANIONS) / name})
    if (::access(path.c_str(), X_OK) == 0) return path.string();
  return (directory / name).string();
}

}  // namespace

std::string ownProgram() {
  std::error_code problem;
  const fs::path own = fs::read_symlink(sys::kOwnProgram, problem);
  if (own.filename() != "caisson-commands") return own.string();
  for (const fs::path& path : {own.parent_path() / "caisson", own.parent_path() / "../../bin/caisson"})
    if (::access(path.c_str(), X_OK) == 0) return path.lexically_normal().string();
  return own.string();
}

std::string ownDirectory() { return fs::path(ownProgram()).parent_path().string(); }

std::string companionProgram(std::string_view name) { return companionPath(ownDirectory(), name); }

Result<void> checkNotInCache(std::string_view program) {
  for (const std::string_view cache : {"/_npx/", "/uv/archive-v0/", "/.cache/pipx/", "/pipx/.cache/"})
    if (program.find(cache) != std::string_view::npos)
      return fail(usageError(program, "this copy of caisson is in a cache that may be emptied at any time",
                             "install caisson first: npm install --global, pipx install or uv tool install"));
  return {};
}

int becomeProgram(const std::string& program, const std::vector<std::string>& line, std::string_view hint) {
  std::vector<const char*> args;
  for (const std::string& arg : line) args.push_back(arg.c_str());
  args.push_back(nullptr);
  ::execv(program.c_str(), const_cast<char* const*>(args.data()));
  return printError(sysError(Stage::usage, "execv", program, errno, hint));
}

int becomeCompanion(std::string_view name, const Verb& verb, const Arguments& arguments) {
  const fs::path own = ownProgram();
  if (own.empty()) return printError(usageError(verb.path, "can't find out where caisson is", "is /proc mounted?"));
  std::vector<std::string> line{own.string()};
  for (const std::string_view part :
       {verb.path.substr(0, verb.path.find(' ')), verb.path.substr(std::min(verb.path.find(' '), verb.path.size()))})
    if (!part.empty()) line.emplace_back(part.front() == ' ' ? part.substr(1) : part);
  for (const Given& given : arguments.given) {
    line.push_back("--" + std::string(given.option->name));
    if (!given.option->value.empty()) line.back() += "=" + std::string(given.value);
  }
  line.insert(line.end(), arguments.operands.begin(), arguments.operands.end());
  return becomeProgram(companionPath(own.parent_path(), name), line,
                       "install " + std::string(name) +
                           " beside caisson (the tarball and the Debian packages have it); in a clone: make");
}

}  // namespace caisson::cli
