#include "host/called_files.h"

#include <algorithm>
#include <optional>

#include "base/path_parts.h"
#include "host/git_programs.h"
#include "policy/rules/called_files.h"

namespace caisson::host {
namespace {

/// Files that are read; a workspace has a few.
constexpr std::size_t kMaxCallers = 1000;
constexpr std::size_t kMaxNamed = 10'000;

/// Whether the name may be one of the protected files that call others, outside of protected directories.
bool mayCallByName(std::string_view name) {
  constexpr std::string_view kBegin[] = {"lefthook", "mise",         "mcp.",  "opencode.",
                                         "crush.",   "captainhook.", "prek.", "simple-git-hooks."};
  if (name.starts_with('.')) return true;
  if (name.empty() || std::string_view("lmocps").find(name.front()) == std::string_view::npos) return false;  // most
  return std::ranges::any_of(kBegin, [&](std::string_view begin) { return name.starts_with(begin); });
}

bool isGitPart(std::string_view part) { return policy::foldName(part) == ".git"; }

/// The directory in which the host runs what a file calls: that of the project.
std::string runDirectory(const std::string& path, std::string_view object) {
  std::string directory;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (isGitPart(std::string_view(path).substr(begin, end - begin))) return path.substr(0, begin == 0 ? 0 : begin - 1);
    begin = end + 1;
  }
  const std::size_t slash = object.rfind('/');
  return slash == std::string_view::npos ? "" : std::string(object.substr(0, slash));
}

}  // namespace

bool CalledFiles::matters(const std::string& directory, std::string_view name) const {
  if (directory != last_directory_) {
    last_directory_ = directory;
    // Of a git directory, only its hooks are scripts.
    const auto match = files_.match(join(directory, "x"));
    in_protected_ = match && match->category != policy::ProtectedCategory::ci &&
                    (nameOf(directory) == "hooks" || !isGitPart(nameOf(std::string(match->object))));
  }
  if (!in_protected_ && !mayCallByName(name)) return false;
  if (policy::commandSource(name) == policy::CommandSource::none) return false;
  if (in_protected_) return true;
  const auto match = files_.match(join(directory, name));
  using Category = policy::ProtectedCategory;
  return match && (match->category == Category::version_control || match->category == Category::editor ||
                   match->category == Category::environment || match->category == Category::task_runner ||
                   match->category == Category::agent);
}

void CalledFiles::add(const std::string& path) {
  const auto match = files_.match(path);
  if (!match || ++reads_ > kMaxCallers) return;
  const auto text = root_.readFile(path, policy::kMaxCommandSource);
  if (!text) return;
  const std::string base = runDirectory(path, match->object);
  const auto name = [&](const std::string& directory, const std::string& value) {
    const auto absolute = absolutePath(directory.empty() ? workspace_ : workspace_ + "/" + directory, value);
    const auto followed = absolute ? followPath(root_, workspace_, outside_, *absolute) : std::nullopt;
    if (!followed) return;
    if (const auto inside = pathBelow(workspace_, followed->path)) addFound(*inside, path);
    for (const std::string& link : followed->links) addFound(link, path);
  };
  for (const policy::CalledPath& called : policy::calledFiles(policy::commandSource(nameOf(path)), *text)) {
    name(base, called.path);
    if (called.after_variable) name(directoryOf(path), called.path);
  }
}

void CalledFiles::addFound(const std::string& path, const std::string& caller) {
  if (path.empty() || path == caller || files_.match(path)) return;
  if (found_.size() < kMaxNamed && known_.insert(path).second)
    found_.push_back({.path = path, .configuration = caller});
}

std::string stateOfFile(const sys::RootDir& root, const std::string& path) {
  const auto info = root.stat(path);
  if (!info || info->type == sys::FileType::directory) return {};
  return std::to_string(info->inode) + " " + std::to_string(info->size) + " " + std::to_string(info->modified_ns) +
         " " + std::to_string(info->changed_ns);
}

}  // namespace caisson::host
