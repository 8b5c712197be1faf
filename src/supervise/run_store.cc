#include "supervise/run_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::FileType;
using sys::RootDir;

constexpr const char* kLock = "lock";
constexpr const char* kLayers = "layers";

Result<Fd> lockOf(const RootDir& runs, const std::string& name, bool create) {
  return runs.openFile(name + "/" + kLock, {.flags = O_RDWR | (create ? O_CREAT | O_EXCL : 0), .mode = 0600});
}

/// Removes the stores whose holder died: their lock is free, or was never taken. Called with the directory locked, so
/// that none is being created.
std::vector<std::string> removeAbandoned(const RootDir& runs) {
  std::vector<std::string> removed;
  const auto entries = runs.list("");
  if (!entries) return removed;
  for (const auto& entry : *entries) {
    auto lock = lockOf(runs, entry.name, false);
    if (!lock && lock.error().sys_errno != ENOENT) continue;
    if (lock && ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (runs.removeTree(entry.name)) removed.push_back(entry.name);  // otherwise retried at the next start
  }
  return removed;
}

}  // namespace

RunStore::RunStore(RootDir runs, std::string name, Fd lock, std::string path)
    : runs_(std::move(runs)), name_(std::move(name)), lock_(std::move(lock)), path_(std::move(path)) {}

RunStore::RunStore(RunStore&& other) noexcept
    : runs_(std::move(other.runs_)),
      name_(std::move(other.name_)),
      lock_(std::move(other.lock_)),
      path_(std::move(other.path_)) {
  other.name_.clear();
}

RunStore::~RunStore() {
  if (name_.empty()) return;
  (void)runs_->removeTree(name_);  // leftovers are removed by the next run: the lock is free
}

Result<RunStore> RunStore::create(const std::string& sandbox_id, const plan::Identity& identity) {
  const std::string home = sys::stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "run store", "", "neither CAISSON_HOME nor HOME is set",
                           "set CAISSON_HOME to a directory you can write"));
  }
  const std::string path = home + "/runs";
  if (auto made = sys::makePrivatePath(path); !made) return fail(made.error());
  auto runs = RootDir::open(path);
  if (!runs) return fail(runs.error());
  auto making = runs->openFile("", {.flags = O_RDONLY, .types = {FileType::directory}});
  if (!making) return fail(making.error());
  if (::flock(making->get(), LOCK_EX) != 0) return fail(sysError(Stage::state, "flock", path, errno));
  removeAbandoned(*runs);
  if (auto made = runs->makeDirs(sandbox_id, 0700); !made) return fail(made.error());
  auto lock = lockOf(*runs, sandbox_id, true);
  if (!lock) return fail(lock.error());
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return fail(sysError(Stage::state, "flock", sandbox_id, errno));
  const std::string layers_name = sandbox_id + "/" + kLayers;
  if (auto made = runs->makeDirs(layers_name, 0700); !made) return fail(made.error());
  auto layers = runs->openFile(layers_name, {.flags = O_RDONLY, .types = {FileType::directory}});
  if (!layers) return fail(layers.error());
  if (identity.parent_writes_maps && ::fchown(layers->get(), identity.outside_uid, identity.outside_gid) != 0) {
    return fail(sysError(Stage::state, "fchown", layers_name, errno));
  }
  // Use the canonical name: the child opens it again without following links.
  const std::string link = "/proc/self/fd/" + std::to_string(layers->get());
  char canonical[4096];
  const ssize_t length = ::readlink(link.c_str(), canonical, sizeof(canonical));
  if (length <= 0 || canonical[0] != '/') return fail(sysError(Stage::state, "readlink", link, errno));
  return RunStore(std::move(*runs), sandbox_id, std::move(*lock),
                  std::string(canonical, static_cast<std::size_t>(length)));
}

Result<std::vector<std::string>> removeAbandonedStores() {
  const std::string path = sys::stateHome() + "/runs";
  auto runs = RootDir::open(path);
  if (!runs && runs.error().sys_errno == ENOENT) return std::vector<std::string>{};
  if (!runs) return fail(runs.error());
  auto making = runs->openFile("", {.flags = O_RDONLY, .types = {FileType::directory}});
  if (!making) return fail(making.error());
  if (::flock(making->get(), LOCK_EX) != 0) return fail(sysError(Stage::state, "flock", path, errno));
  return removeAbandoned(*runs);
}

}  // namespace caisson::supervise
