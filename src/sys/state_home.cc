#include "sys/state_home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/sha256.h"
#include "sys/home_directory.h"

namespace caisson::sys {
namespace {

std::string absolute(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";
}

bool isDirectory(const std::string& path) {
  struct stat status;
  return path.size() > 1 && path[0] == '/' && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

std::string stateHome() {
  std::string home = absolute("CAISSON_HOME");
  return home.empty() ? defaultStateHome() : home;
}

bool isDefaultStateHome() { return absolute("CAISSON_HOME").empty(); }

std::string defaultStateHome() {
  if (const std::string data = absolute("XDG_DATA_HOME"); !data.empty()) return data + "/caisson";
  constexpr const char* kBelowHome = "/.local/share/caisson";
  if (const std::string home = absolute("HOME"); isDirectory(home)) return home + kBelowHome;
  if (const std::string home = homeFromPasswd(::geteuid()); isDirectory(home)) return home + kBelowHome;
  return {};
}

namespace {

/// The home of the user whose field `index` in the user database is `wanted`. Parsed by hand: getpwuid would load NSS
/// modules.
std::string homeWhere(std::size_t index, const std::string& wanted) {
  const Fd fd(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  std::string text;
  char buffer[8192];
  for (ssize_t got; text.size() < (1U << 20) && (got = ::read(fd.get(), buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::vector<std::string> fields;
    for (std::size_t at = begin; at <= end;) {
      const std::size_t stop = std::min(text.find(':', at), end);
      fields.push_back(text.substr(at, stop - at));
      at = stop + 1;
    }
    if (fields.size() >= 6 && fields[index] == wanted) return fields[5];
    begin = end + 1;
  }
  return {};
}

}  // namespace

std::string homeFromPasswd(uid_t uid) { return homeWhere(2, std::to_string(uid)); }

std::string homeOfUser(const std::string& user) { return homeWhere(0, user); }

std::string memoryStores(uid_t uid, const std::string& home) {
  return "/dev/shm/caisson-" + std::to_string(uid) + "-" + hex(Sha256().add(home).finish()).substr(0, 16);
}

Result<void> makePrivatePath(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};  // usually only the last part can be missing
  for (std::size_t at = 1; at <= path.size(); ++at) {
    if (at < path.size() && path[at] != '/') continue;
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(sysError(Stage::state, "mkdir", part, errno, "set CAISSON_HOME to a directory you can write"));
    }
  }
  return {};
}

Result<Fd> openPrivateDirectory(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Fd directory(::open(path.c_str(), kFlags));
  if (!directory && errno == ENOENT) {
    if (auto made = makePrivatePath(path); !made) return fail(made.error());
    directory = Fd(::open(path.c_str(), kFlags));
  }
  if (!directory) {
    const int error = errno;
    if (error == ELOOP || error == ENOTDIR) {
      return fail(plainError(Stage::state, "open", path, "it is a link or a file, not a directory",
                             "remove it, or set CAISSON_HOME to another directory"));
    }
    return fail(sysError(Stage::state, "open", path, error, "set CAISSON_HOME to a directory you can write"));
  }
  struct stat status;
  if (::fstat(directory.get(), &status) != 0) return fail(sysError(Stage::state, "fstat", path, errno));
  if (status.st_uid != ::geteuid()) {
    return fail(plainError(Stage::state, "open", path,
                           "it belongs to user " + std::to_string(status.st_uid) + ", not to user " +
                               std::to_string(::geteuid()) + " who runs caisson",
                           "set CAISSON_HOME to a directory of this user"));
  }
  if ((status.st_mode & 022U) != 0) {
    return fail(plainError(Stage::state, "open", path, "others may write to it", "chmod 700 " + path));
  }
  return directory;
}

Result<Fd> openStateDirectory(const std::string& name) {
  const std::string home = stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "open", name, "neither CAISSON_HOME nor HOME is set",
                           "set CAISSON_HOME to a directory you can write"));
  }
  return openPrivateDirectory(home + "/" + name);
}

}  // namespace caisson::sys
