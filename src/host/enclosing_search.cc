#include "host/enclosing_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/path_parts.h"
#include "host/git_programs.h"
#include "plan/workspace.h"
#include "sys/file_identity.h"
#include "sys/home_directory.h"

namespace caisson::host {
namespace {

struct Repositories {
  std::string nearest, outermost;  ///< work trees; empty: none
  bool linked = false;             ///< the outermost is a linked work tree of git
};

/// The user's repositories around a tree, or that it is. Another user's, in /tmp for example, are not asked: git
/// ignores them, too.
Repositories repositoriesAround(const std::string& tree) {
  struct Candidate {
    std::string path;
    bool is_file = false;
  };
  std::vector<Candidate> candidates;
  for (std::string at = tree; at != "/"; at = parentOf(at)) {
    struct stat status{};
    const bool exists = ::stat((at + "/.git").c_str(), &status) == 0;
    if (exists && (status.st_uid == ::geteuid() || status.st_uid == 0))
      candidates.push_back({at, S_ISREG(status.st_mode)});
  }
  Repositories found;
  if (candidates.empty()) return found;  // the homes are not asked for at every launch
  for (const Candidate& one : candidates) {
    if (sys::holdsHome(one.path)) break;
    if (found.nearest.empty()) found.nearest = one.path;
    found.outermost = one.path;
    found.linked = one.is_file && isLinkedWorkTree(one.path + "/.git");
    if (found.linked) break;
  }
  return found;
}

/// `around`, if it holds `directory`, unless a home is in it.
std::string higher(const std::string& directory, const std::string& around) {
  const bool holds =
      !around.empty() && around != directory && plan::below(directory, around) && !sys::holdsHome(around);
  return holds ? around : directory;
}

/// Opens the directory around a tree. Nothing if the tree is not at its place in it any more.
std::optional<sys::RootDir> openAround(const sys::RootDir& tree, const std::string& path, const std::string& enclosing,
                                       std::string& why_not) {
  auto descriptor = sys::openWithoutLinks(enclosing);
  auto opened = descriptor ? sys::RootDir::adopt(*std::move(descriptor), {.known_as = enclosing})
                           : Result<sys::RootDir>(fail(descriptor.error()));
  if (!opened) {
    why_not = opened.error().message();
    return std::nullopt;
  }
  const auto there = opened->enter(path.substr(enclosing.size() + 1));
  struct stat found{}, expected{};
  if (!there || ::fstat(there->descriptor(), &found) != 0 || ::fstat(tree.descriptor(), &expected) != 0 ||
      found.st_ino != expected.st_ino || found.st_dev != expected.st_dev) {
    why_not = "another directory has the path " + path;
    return std::nullopt;
  }
  return *std::move(opened);
}

/// Adds what the search around a tree found in it to what its own search found.
class Merge {
 public:
  Merge(const std::string& enclosing, std::string prefix, plan::WorkspaceScan& found)
      : enclosing_(enclosing), prefix_(std::move(prefix)), found_(found) {}

  void add(plan::WorkspaceScan around) {
    addSecrets(around);
    addProtected(around);
    addCalled(around);
    for (const std::string& path : around.unscanned) found_.unscanned.push_back(absolute(path));
    found_.unscanned_count += around.unscanned_count;
    if (around.exhausted) {
      found_.exhausted = true;
      found_.missed_around =
          enclosing_ + " (" +
          (around.covered.empty() ? "its links or git configurations are too many"
                                  : absolute(around.covered.front().path) + ": " + around.covered.front().reason) +
          ")";
    }
  }

 private:
  [[nodiscard]] std::string absolute(const std::string& path) const {
    return path == "." || path.empty() ? enclosing_ : enclosing_ + "/" + path;
  }
  /// A path of the enclosing directory, relative to the tree; nullopt: it is not below it.
  [[nodiscard]] std::optional<std::string> inside(const std::string& path) const {
    if (!path.starts_with(prefix_)) return std::nullopt;
    return path.substr(prefix_.size());
  }

  void addSecrets(plan::WorkspaceScan& around) {
    std::set<std::string> hidden(found_.secrets.begin(), found_.secrets.end());
    for (const std::string& path : around.secrets) {
      auto own = inside(path);
      if (!own || isInOneOf(*own, hidden)) continue;
      if (const auto kind = around.secret_kinds.find(path); kind != around.secret_kinds.end()) {
        found_.secret_kinds.try_emplace(*own, kind->second);
      }
      hidden.insert(*own);
      found_.secrets.push_back(*std::move(own));
    }
    std::ranges::sort(found_.secrets);
    for (const plan::ReplacedFile& file : found_.redacted) hidden.insert(file.path);
    for (plan::ReplacedFile& file : around.redacted) {
      auto own = inside(file.path);
      if (own && !isInOneOf(*own, hidden)) found_.redacted.push_back({*std::move(own), std::move(file.content)});
    }
  }

  void addProtected(const plan::WorkspaceScan& around) {
    std::set<std::string> known;
    for (const auto& one : found_.protected_paths) known.insert(one.path);
    for (const plan::WorkspaceScan::Protected& one : around.protected_paths) {
      plan::WorkspaceScan::Protected own = one;
      own.through = one.through.empty() || one.through.starts_with('/') ? one.through
                    : inside(one.through)                               ? *inside(one.through)
                                                                        : absolute(one.through);
      if (auto path = inside(one.path)) {
        own.path = *std::move(path);
      } else if (!one.through.empty() && one.directory && holdsTree(one.path)) {
        own.path = plan::kWholeWorkspace;  // by its own name, the tree was judged with all directories above it
      } else {
        continue;
      }
      if (known.insert(own.path).second) found_.protected_paths.push_back(std::move(own));
    }
  }

  void addCalled(const plan::WorkspaceScan& around) {
    std::set<std::string> known;
    for (const plan::CalledFile& one : found_.called_files) known.insert(one.path);
    for (const plan::CalledFile& one : around.called_files) {
      auto path = inside(one.path);
      if (!path || !known.insert(*path).second) continue;
      const auto caller = inside(one.caller);
      found_.called_files.push_back({*std::move(path), caller ? *caller : absolute(one.caller), one.state});
    }
  }

  [[nodiscard]] bool holdsTree(const std::string& path) const {
    return path == plan::kWholeWorkspace || prefix_.starts_with(path + "/");
  }

  const std::string& enclosing_;
  const std::string prefix_;
  plan::WorkspaceScan& found_;
};

std::string prefixOf(const std::string& tree, const std::string& enclosing) {
  return tree == enclosing ? "" : tree.substr(enclosing.size() + 1) + "/";
}

ScanOptions optionsAround(const ScanOptions& options, const std::string& prefix) {
  ScanOptions around = options;
  around.open_closed = false;  // nothing outside of the tree is changed
  around.denied.clear();
  around.denied_paths.clear();
  for (std::string& path : around.shown) path.insert(0, prefix);
  around.skipped.clear();
  for (const std::string& path : options.skipped) around.skipped.insert(prefix + path);
  return around;
}

}  // namespace

std::string enclosingDirectory(const std::string& tree, const std::string& around) {
  const Repositories found = repositoriesAround(tree);
  return higher(found.outermost.empty() ? tree : found.outermost, around);
}

std::string projectDirectory(const std::string& tree, const std::string& around) {
  const Repositories found = repositoriesAround(tree);
  if (found.nearest.empty()) return higher(tree, around);
  return found.linked && found.nearest == found.outermost ? found.nearest : higher(found.nearest, around);
}

plan::WorkspaceScan searchEnclosed(sys::RootDir root, const std::string& tree, const ScanOptions& options,
                                   ScanCache* cache) {
  const std::string enclosing = enclosingDirectory(tree, options.around);
  if (enclosing == tree) return scanWorkspace(std::move(root), tree, options, cache);
  std::string why_not;
  auto opened = openAround(root, tree, enclosing, why_not);
  plan::WorkspaceScan found = scanWorkspace(std::move(root), tree, options, cache);
  found.judged_from = enclosing;
  if (!opened) {
    found.exhausted = true;
    found.missed_around = enclosing + " (" + why_not + ")";
    return found;
  }
  const std::string prefix = prefixOf(tree, enclosing);
  ScanOptions around = optionsAround(options, prefix);
  std::optional<policy::ProtectedFiles> files;
  if (options.protected_files != nullptr) {
    around.protected_files = &files.emplace(options.protected_files->at(enclosing));
  }
  if (cache != nullptr && cache->around == nullptr) cache->around = std::make_shared<ScanCache>();
  Merge(enclosing, prefix, found)
      .add(scanWorkspace(*std::move(opened), enclosing, around, cache != nullptr ? cache->around.get() : nullptr));
  return found;
}

EnclosingLinks findEnclosingLinks(sys::RootDir root, const std::string& tree, const policy::ProtectedFiles& files,
                                  const std::vector<std::string>& patterns, const std::string& around) {
  EnclosingLinks found{.directory = enclosingDirectory(tree, around), .prefix = {}, .links = {}, .programs = {}};
  std::string why_not;
  std::optional<sys::RootDir> opened;
  if (found.directory != tree) opened = openAround(root, tree, found.directory, why_not);
  const auto options = [&](const policy::ProtectedFiles& judge) {
    return ScanOptions{
        .secrets = false, .protected_files = &judge, .only_links = true, .index = patterns, .keep_index = true};
  };
  plan::WorkspaceScan own = scanWorkspace(std::move(root), tree, options(files));
  found.complete = !own.exhausted && why_not.empty();
  if (!opened) {
    found.directory = tree;
    found.links = std::move(own.links);
    found.programs = std::move(own.programs);
    std::ranges::move(own.called, std::back_inserter(found.programs));
    return found;
  }
  found.prefix = prefixOf(tree, found.directory);
  const policy::ProtectedFiles all_files = files.at(found.directory);
  plan::WorkspaceScan all = scanWorkspace(*std::move(opened), found.directory, options(all_files));
  found.complete = found.complete && !all.exhausted;
  found.links = std::move(all.links);
  found.programs = std::move(all.programs);
  std::ranges::move(all.called, std::back_inserter(found.programs));
  std::ranges::move(own.called, std::back_inserter(own.programs));
  std::set<std::tuple<std::string, std::string, bool>> known;
  for (const policy::WorkspaceLink& link : found.links) known.emplace(link.path, link.target, link.executed);
  for (policy::WorkspaceLink& link : own.links) {
    link.path.insert(0, found.prefix);
    if (!known.contains({link.path, link.target, link.executed})) found.links.push_back(std::move(link));
  }
  for (policy::NamedProgram& program : own.programs) {
    // "" is the tree itself.
    program.path = program.path.empty() ? found.prefix.substr(0, found.prefix.size() - 1) : found.prefix + program.path;
    if (!program.configuration.starts_with('/')) program.configuration.insert(0, found.prefix);
    const auto same = [&](const policy::NamedProgram& one) { return one.path == program.path; };
    if (std::ranges::none_of(found.programs, same)) found.programs.push_back(std::move(program));
  }
  return found;
}

}  // namespace caisson::host
