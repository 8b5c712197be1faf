#include "image_store/session_images.h"

#include <cerrno>

#include "session/store/metadata.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::image {

Result<std::set<ContentDigest>> sessionImages() {
  std::set<ContentDigest> used;
  const auto sessions = sys::RootDir::open(sys::stateHome() + "/sessions");
  if (!sessions && sessions.error().sys_errno == ENOENT) return used;
  if (!sessions) return fail(sessions.error());
  const auto entries = sessions->list("");
  if (!entries) return fail(entries.error());
  for (const sys::DirectoryEntry& entry : *entries) {
    if (entry.type != sys::FileType::directory) continue;
    const auto directory = sessions->enter(entry.name);
    // Without metadata: it is being created or removed.
    if (!directory || !directory->stat("meta.json")) continue;
    const auto metadata = session::readMetadata(*directory);
    if (!metadata) return fail(metadata.error());
    if (const auto digest = ContentDigest::parse(metadata->policy.filesystem.root)) used.insert(*digest);
  }
  return used;
}

}  // namespace caisson::image
