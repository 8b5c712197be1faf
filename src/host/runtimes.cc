#include "host/runtimes.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "approval/owner.h"
#include "plan/runtime.h"

namespace caisson::host {
namespace {

const std::string kRuntimeDirectories[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                           "/usr/bin",        "/sbin",          "/bin"};

Error notUsable(const std::string& path, std::string_view reason) {
  return plainError(Stage::host, "runtime", path, path + ": " + std::string(reason),
                    "install it from a package of the system");
}

/// Whether only root, or the caller with `own`, may change the file or directory.
bool isSafe(const struct stat& status, bool own) {
  const bool owned = status.st_uid == 0 || (own && status.st_uid == ::geteuid());
  return owned && (status.st_mode & 022U) == 0;
}

/// The path without links, if it is a program in directories that others cannot change.
Result<std::string> checkProgram(const std::string& path, bool own) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return fail(sysError(Stage::host, "realpath", path, errno));
  const std::string program = real.get();
  struct stat status;
  if (::stat(program.c_str(), &status) != 0) return fail(sysError(Stage::host, "stat", program, errno));
  if (!S_ISREG(status.st_mode) || ::access(program.c_str(), X_OK) != 0)
    return fail(notUsable(program, "it is not an executable file"));
  if (!isSafe(status, own)) return fail(notUsable(program, "users other than root may change it"));
  for (std::size_t end = program.rfind('/'); end != std::string::npos;
       end = end == 0 ? std::string::npos : program.rfind('/', end - 1)) {
    const std::string directory = end == 0 ? "/" : program.substr(0, end);
    if (::stat(directory.c_str(), &status) != 0 || !isSafe(status, own))
      return fail(notUsable(program, "users other than root may change " + directory));
  }
  return program;
}

Result<std::string> locate(const std::string& name) {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  const auto& paths = owner->runtimes.paths;
  const auto listed = std::ranges::find(paths, name, &std::pair<std::string, std::string>::first);
  return listed != paths.end() ? checkRuntimePath(listed->second) : findRuntime(name, kRuntimeDirectories);
}

/// Names of the host's /proc that are not processes; in a new one they are the same.
std::vector<std::string> procEntries() {
  std::vector<std::string> names;
  DIR* list = ::opendir("/proc");
  if (list == nullptr) return names;
  while (const dirent* entry = ::readdir(list)) {
    const std::string name = entry->d_name;
    const bool link = entry->d_type == DT_LNK;  // to what is masked or shown itself
    if (!link && name[0] != '.' && (name[0] < '0' || name[0] > '9')) names.push_back(name);
  }
  ::closedir(list);
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::string> findRuntime(const std::string& name, std::span<const std::string> directories) {
  for (const std::string& directory : directories) {
    const std::string path = directory + "/" + name;
    if (::access(path.c_str(), F_OK) == 0) return checkProgram(path, false);
  }
  return fail(plainError(Stage::host, "runtime", name, "it is not installed in a directory of the system",
                         "install " + name + ", or name its path in runtimes.paths of the owner's configuration"));
}

Result<std::string> checkRuntimePath(const std::string& path) { return checkProgram(path, true); }

plan::RuntimeFacts observeRuntime(policy::Runtime runtime) {
  plan::RuntimeFacts facts;
  auto path = locate(std::string(plan::runtimeName(runtime)));
  if (path) {
    facts.path = *std::move(path);
    facts.proc_entries = procEntries();
    return facts;
  }
  const Error& error = path.error();
  facts.why_not = error.reason.empty() ? error.message() : error.reason;
  facts.hint = error.hint;
  return facts;
}

}  // namespace caisson::host
