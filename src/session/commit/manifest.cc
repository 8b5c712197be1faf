#include "session/commit/manifest.h"

#include <cstdint>

#include "base/sha256.h"

namespace caisson::session {

ManifestEntry manifestEntry(const Change& change, const Action& action) {
  ManifestEntry entry;
  static_cast<Change&>(entry) = change;
  entry.size = action.kind == ActionKind::file || action.kind == ActionKind::link ? action.size : 0;
  entry.mode = action.mode;
  entry.sha256 = action.sha256;
  entry.target = action.target;
  entry.merged = action.merged;
  if (action.before) entry.replaced = action.before->text();
  return entry;
}

std::string manifestDigest(const std::string& workspace, const std::vector<ManifestEntry>& manifest) {
  Sha256 digest;
  const auto add = [&](std::string_view text) { digest.add(text).add(std::uint8_t{0}); };
  add("caisson commit 3");
  add(workspace);
  for (const ManifestEntry& entry : manifest) {
    add(name(entry.kind));
    add(entry.type);
    add(std::to_string(entry.mode));
    add(std::to_string(entry.size));
    add(entry.sha256);
    add(entry.path);
    add(entry.target);
    add(entry.replaces_directory ? "replaces a directory" : "");
    add(entry.replaced);
  }
  return hex(digest.finish());
}

}  // namespace caisson::session
