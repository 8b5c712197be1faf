#include "session/store/session_paths.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/state_disk.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"
#include "sys/state_home.h"

namespace caisson::session {
namespace {

constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kMaxName = 64;

/// Must be ours and private: access to it gives access to every session.
Result<sys::RootDir> openPrivate(const std::string& path) {
  auto root = sys::RootDir::open(path);
  if (!root && root.error().sys_errno == ENOENT) {
    if (auto made = sys::makePrivatePath(path); !made) return fail(made.error());
    root = sys::RootDir::open(path);
  }
  if (!root) return root;
  struct stat status;
  if (::fstat(root->descriptor(), &status) != 0) return fail(sysError(Stage::state, "fstat", path, errno));
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return fail(plainError(Stage::state, "open", path, "the directory of sessions is not private to this user",
                           "chmod 700 it, or set CAISSON_HOME to a directory of your own"));
  }
  return root;
}

/// The directory for layers in memory. An error if there is no suitable tmpfs (Linux 6.6). /dev/shm is open to
/// everyone, so the directory may be another user's or a link.
Result<sys::RootDir> openMemoryStores(const sys::RootDir& sessions) {
  auto canonical = sys::canonicalPath(sessions.descriptor());
  if (!canonical) return fail(canonical.error());
  const std::string home = canonical->substr(0, canonical->rfind('/'));
  const std::string path = sys::memoryStores(::geteuid(), home);
  const sys::Fd shared(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct statfs system{};
  if (!shared || ::fstatfs(shared.get(), &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return fail(plainError(Stage::state, "open", "/dev/shm", "it is not a file system in memory", ""));
  }
  if (std::string why = host::whyNoOverlay(shared.get()); !why.empty()) {
    return fail(plainError(Stage::state, "open", "/dev/shm", why, ""));
  }
  if (auto checked = sys::openPrivateDirectory(path); !checked) return fail(checked.error());
  return openPrivate(path);
}

}  // namespace

bool isIdPrefix(std::string_view text) {
  constexpr std::size_t kMinDigits = 4;
  if (text.size() < 3 + kMinDigits || text.size() > 3 + kIdDigits || !text.starts_with("cs-")) return false;
  return std::all_of(text.begin() + 3, text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool isId(std::string_view text) { return text.size() == 3 + kIdDigits && isIdPrefix(text); }

Result<void> checkName(std::string_view call, std::string_view name) {
  const bool letters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  });
  if (!name.empty() && name.size() <= kMaxName && letters && name[0] != '.' && name[0] != '-' && !isId(name)) return {};
  return fail(plainError(Stage::usage, call, name, "not a usable name",
                         "use 1 to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit"));
}

Result<SessionPaths> SessionPaths::open(std::string program) {
  const std::string home = sys::stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "open", "sessions", "neither CAISSON_HOME nor HOME is set",
                           "set CAISSON_HOME to a directory you can write"));
  }
  auto sessions = openPrivate(home + "/sessions");
  if (!sessions) return fail(sessions.error());
  auto stores = openPrivate(home + "/stores");
  if (!stores) return fail(stores.error());
  std::string why;  // other unsuitable file systems: checkFeatures() names the obstacle
  if (host::liesOnOverlay(stores->descriptor())) {
    why = host::whyNoOverlay(stores->descriptor());
    auto memory = openMemoryStores(*sessions);
    if (memory) {
      stores = std::move(memory);
    } else {
      why.clear();
    }
  }
  SessionPaths paths(home, std::move(program), std::move(*sessions), std::move(*stores));
  if (!why.empty()) paths.why_in_memory_ = home + ": " + why;
  return paths;
}

Result<sys::RootDir> SessionPaths::replaced() const { return openPrivate(home_ + "/replaced"); }

void SessionPaths::removeEmptyMemoryStores() const {
  if (!why_in_memory_.empty()) ::rmdir(stores_.knownAs().c_str());
}

Result<sys::Fd> SessionPaths::lockAll() const {
  constexpr const char* kName = ".lock";
  auto file = sessions_.openFile(kName, {.flags = O_RDWR | O_CREAT, .mode = 0600});
  if (!file) return file;
  const std::string path = sessions_.knownAs() + "/" + kName;
  if (auto locked = sys::lockFile(file->get(), sys::LockKind::exclusive, sys::kLockTimeout, path); !locked)
    return fail(locked.error());
  return file;
}

Result<sys::Fd> lockFile(const sys::RootDir& directory, const char* name, bool wait) {
  auto lock = directory.openFile(name, {.flags = O_RDWR | O_CREAT, .mode = 0600});
  if (!lock) return lock;
  int locked;
  do {
    locked = ::flock(lock->get(), LOCK_EX | (wait ? 0 : LOCK_NB));
  } while (locked != 0 && errno == EINTR);
  if (locked != 0) {
    return fail(sysError(Stage::state, "flock", name, errno,
                         "the file system of CAISSON_HOME must have flock locks; set CAISSON_HOME to a local disk"));
  }
  return lock;
}

Result<sys::Fd> lockFileWithin(const sys::RootDir& directory, const char* name, std::chrono::milliseconds timeout) {
  auto file = directory.openFile(name, {.flags = O_RDWR | O_CREAT, .mode = 0600});
  if (!file) return file;
  const auto locked = sys::lockFile(file->get(), sys::LockKind::exclusive, timeout, name);
  if (locked) return file;
  if (const int problem = locked.error().sys_errno; problem != 0 && problem != EWOULDBLOCK) return fail(locked.error());
  Error error = sysError(Stage::state, "lock", "session", EBUSY, "try again when that has ended");
  error.reason = "another operation on the session is still going on";
  return fail(std::move(error));
}

bool isLocked(const sys::RootDir& directory, const char* name) {
  const auto file = directory.openFile(name, {.flags = O_RDWR});
  return file && ::flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace caisson::session
