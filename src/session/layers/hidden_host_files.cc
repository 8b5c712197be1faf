#include "session/layers/hidden_host_files.h"

#include <algorithm>

#include "host/enclosing_search.h"
#include "host/secret_search.h"
#include "plan/denied_paths.h"
#include "plan/workspace.h"
#include "policy/rules/denied_names.h"

namespace caisson::session {
namespace {

/// Calls `matches` with the path and every directory above it, shortest first; whether one of them matches.
template <class Matches>
bool anyOnTheWay(const std::string& path, const Matches& matches) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (matches(path.substr(0, slash), true)) return true;
  }
  return matches(path, false);
}

}  // namespace

host::ScanOptions searchOptions(const Metadata& metadata) {
  const policy::Workspace& workspace = metadata.policy.filesystem.workspace;
  host::ScanOptions options;
  options.secrets = !workspace.show_secrets;
  options.around = workspace.around;
  options.shown = plan::shownFiles(workspace, metadata.workspace);
  options.denied = plan::deniedPatterns(metadata.policy);
  options.denied_paths = plan::deniedInWorkspace(metadata.policy, metadata.workspace);
  options.index = workspace.protected_files;
  options.keep_index = true;
  return options;
}

HiddenHostFiles::HiddenHostFiles(const sys::RootDir& real, const Metadata& metadata)
    : real_(real), workspace_(metadata.workspace), options_(searchOptions(metadata)) {
  options_.denied = plan::deniedInWorkspace(metadata.policy, metadata.workspace);
}

void HiddenHostFiles::search() {
  std::vector<std::string> names{"."};
  if (auto root = real_.enter("")) {
    const auto scan = host::searchEnclosed(*std::move(root), workspace_, options_, &cache_);
    names = scan.hidden();
    for (const plan::ReplacedFile& file : scan.redacted) names.push_back(file.path);
  }
  all_hidden_ = std::ranges::find(names, ".") != names.end();
  found_.emplace(names);
}

bool HiddenHostFiles::isDenied(std::string_view path) const {
  return std::ranges::any_of(options_.denied,
                             [&](const std::string& entry) { return policy::deniesPath(entry, path); });
}

bool HiddenHostFiles::isNamedSecret(const std::string& path, bool directory) const {
  return options_.secrets && host::isNamedSecret(workspace_, path, directory, options_.shown);
}

bool HiddenHostFiles::hides(const std::string& path, bool directory) {
  // Names first: they say the same at any time, also for what was made after the search.
  const bool named = anyOnTheWay(path, [&](const std::string& one, bool above) {
    return isDenied(one) || isNamedSecret(one, above || directory);
  });
  if (named) return true;
  if (!found_) search();
  return all_hidden_ || found_->hides(path);
}

bool HiddenHostFiles::hidesContent(const std::string& path, std::string_view text, std::uint64_t size) const {
  return options_.secrets && host::isSecretContent(workspace_, path, text, size, options_.shown);
}

}  // namespace caisson::session
