#include "session/commit/removed_directory.h"

#include <utility>
#include <vector>

#include "base/sha256.h"
#include "session/commit/journal.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

/// Whether the session saw the whole file. A regular file in the mask layer replaces one without its credentials.
bool isSeen(const LayerStack& before, const LayerStack::Entry& entry) {
  return entry.present && before.layers()[entry.layer].name != "mask";
}

}  // namespace

RemovedDirectory inspectRemoval(const RealTree& real, const LayerStack& before, const std::string& path,
                                const RemovalRules& rules) {
  RemovedDirectory found;
  Sha256 state;
  std::vector<std::pair<std::string, LayerStack::View>> pending{{path, before.find(path).below}};
  while (!pending.empty()) {
    const auto [directory, view] = std::move(pending.back());
    pending.pop_back();
    if (!rules.is_unchanged_directory(directory)) return {.changed = directory};
    const auto entries = real.root().list(directory);
    if (!entries) return {.changed = directory};
    for (const sys::DirectoryEntry& entry : *entries) {
      const std::string below = directory + "/" + entry.name;
      const auto info = real.root().stat(below);
      if (!info) return {.changed = below};
      const bool is_directory = info->type == FileType::directory;
      state.add(below).add(std::uint8_t{0}).add(HostIdentity::of(*info).text()).add(std::uint8_t{0});
      if (info->type == FileType::regular) found.bytes += info->size;
      if (found.closed.empty() && rules.is_closed(below)) found.closed = below;
      if (found.held.empty()) {
        found.held_reason = rules.why_held(below, is_directory);
        if (!found.held_reason.empty()) found.held = below;
      }
      LayerStack::Entry seen = before.lookUp(below, view);
      if (is_directory) {
        pending.emplace_back(below, std::move(seen.below));
        continue;
      }
      const bool ours = rules.is_ours(below, *info);
      if (!ours && real.isLater(*info, rules.since_ns)) return {.changed = below};
      if (info->type == FileType::regular && rules.is_open(below)) return {.open = below};
      if (ours) continue;
      if (!isSeen(before, seen)) return {.unseen = below};
    }
  }
  found.state = hex(state.finish());
  return found;
}

}  // namespace caisson::session
