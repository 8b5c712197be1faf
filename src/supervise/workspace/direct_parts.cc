#include "supervise/workspace/direct_parts.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/path_parts.h"
#include "plan/nested_paths.h"
#include "plan/searched_tree.h"

namespace caisson::supervise {

DirectParts::DirectParts(const plan::Plan& plan) {
  if (!plan.watched) return;
  const std::string above = plan.watched->target + "/";
  for (const plan::Step& step : plan.steps) {
    if (const auto* layer = std::get_if<plan::RootLayer>(&step); layer != nullptr && !layer->above) {
      const std::string workspace = plan.watched->path + "/";
      if (layer->source.starts_with(workspace)) copies_.push_back({"/", layer->source.substr(workspace.size())});
    }
    const auto* bind = std::get_if<plan::Bind>(&step);
    if (bind == nullptr) continue;
    if (plan::isCopy(*bind) && (bind->source + "/").starts_with(above)) {
      copies_.push_back({bind->target, bind->source.substr(std::min(bind->source.size(), above.size()))});
      continue;
    }
    if (!bind->target.starts_with(above)) continue;
    if (bind->source.starts_with(plan::kRedactedFiles)) {
      redacted_.insert(bind->target.substr(above.size()));
      continue;
    }
    if (bind->inside) continue;  // a part of the layer, read-only or pinned
    all_.insert(bind->target.substr(above.size()));
    if (bind->writable) writable_.insert(bind->target.substr(above.size()));
  }
}

bool DirectParts::holds(const std::string& path) const { return isInOneOf(path, all_); }

std::vector<std::string> DirectParts::redacted() const {
  std::vector<std::string> found;
  for (const std::string& path : redacted_) {
    if (holds(path)) found.push_back(path);
  }
  return found;
}

MaskTarget DirectParts::maskTarget(const plan::Plan& plan, const std::vector<std::string>& paths) const {
  std::vector<std::string> kept(redacted_.begin(), redacted_.end());
  kept.insert(kept.end(), all_.begin(), all_.end());
  return {.directory = plan.watched->target,
          .paths = paths,
          .uid = plan.identity.inside_uid,
          .gid = plan.identity.inside_gid,
          .copies = copies_,
          .kept = std::move(kept)};
}

bool DirectParts::writes(const std::string& path) const { return isInOneOf(path, writable_); }

}  // namespace caisson::supervise
