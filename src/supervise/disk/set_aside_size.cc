#include "supervise/disk/set_aside_size.h"

#include <fcntl.h>

#include <string>

#include "supervise/limits/tree_size.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

std::uint64_t sizeBelow(const sys::RootDir& root, const std::string& path) {
  const auto entered = root.enter(path);
  if (!entered) return 0;
  const sys::Fd directory(::openat(entered->descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory ? measureTree(directory.get(), {}).bytes : 0;
}

}  // namespace

std::uint64_t quarantinedBytes() {
  const auto home = sys::RootDir::open(sys::stateHome());
  return home ? sizeBelow(*home, "quarantined-files") : 0;
}

std::uint64_t evidenceBytes() {
  std::uint64_t bytes = 0;
  const auto home = sys::RootDir::open(sys::stateHome());
  if (!home) return bytes;
  const auto caches = home->enter("caches");
  if (!caches) return bytes;
  const auto keys = caches->list("");
  if (!keys) return bytes;
  for (const sys::DirectoryEntry& key : *keys) {
    const auto targets = caches->list(key.name);
    if (!targets) continue;
    for (const sys::DirectoryEntry& target : *targets) {
      for (const char* name : {"/evidence", "/old-evidence"}) {
        bytes += sizeBelow(*caches, key.name + "/" + target.name + name);
      }
    }
  }
  return bytes;
}

}  // namespace caisson::supervise
