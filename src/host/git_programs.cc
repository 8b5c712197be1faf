#include "host/git_programs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/path_parts.h"
#include "base/text.h"
#include "isolation/child.h"
#include "policy/rules/git_config.h"
#include "policy/rules/protected_files.h"
#include "sys/fd.h"
#include "sys/home_directory.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxConfig = 1 << 20;

/// The content of a regular file of the host.
std::optional<std::string> readHostFile(const std::string& path, bool& too_large) {
  const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(kMaxConfig + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  too_large = size > kMaxConfig;
  if (too_large) return std::nullopt;
  text.resize(size);
  return text;
}

struct Found {
  mode_t type = 0;    ///< 0: it does not exist
  bool ours = false;  ///< it belongs to the user or to root
};
Found find(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mode & S_IFMT, status.st_uid == ::geteuid() || status.st_uid == 0};
}

/// Whether `path` is `directory` or a directory above it.
bool holds(const std::string& path, const std::string& directory) { return pathBelow(path, directory).has_value(); }

}  // namespace

std::optional<std::string> absolutePath(const std::string& base, std::string_view value) {
  std::string whole;
  if (value.starts_with("~/")) {
    const auto homes = sys::homeDirectories();
    if (homes.empty()) return std::nullopt;
    whole = homes.front() + std::string(value.substr(1));
  } else if (value.starts_with('~')) {  // another user's home, as git reads it
    const std::size_t slash = std::min(value.find('/'), value.size());
    const std::string home = sys::homeOfUser(std::string(value.substr(1, slash - 1)));
    if (home.empty()) return std::nullopt;
    whole = home + std::string(value.substr(slash));
  } else if (value.starts_with("%(")) {
    return std::nullopt;
  } else {
    whole = value.starts_with('/') ? std::string(value) : base + "/" + std::string(value);
  }
  return whole;
}

std::optional<std::string> pathInGitDirectory(const std::string& workspace) {
  for (std::string at = workspace; at != "/";) {
    at = parentOf(at);
    const auto has = [&](std::string_view folded) {
      const std::string_view name = folded == "head" ? "HEAD" : folded;
      return find((at == "/" ? "" : at) + "/" + std::string(name)).type != 0;
    };
    if (policy::hasRepositoryShape(has)) return pathBelow(at, workspace);
  }
  return std::nullopt;
}

bool isLinkedWorkTree(const std::string& git_file) {
  bool too_large = false;
  const std::string text = readHostFile(git_file, too_large).value_or("");
  const std::string_view line = trimmed(std::string_view(text).substr(0, text.find('\n')), " \t\r");
  return line.starts_with("gitdir:") && nameOf(parentOf(std::string(line))) == "worktrees";
}

GitPrograms::GitPrograms(const sys::RootDir& root, const std::string& workspace, policy::OutsideLinks outside)
    : root_(root), workspace_(workspace), outside_(std::move(outside)) {
  user_configs_.emplace_back("/etc/gitconfig");
  const auto homes = sys::homeDirectories();
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && config[0] == '/') {
    user_configs_.push_back(std::string(config) + "/git/config");
  } else if (!homes.empty()) {
    user_configs_.push_back(homes.front() + "/.config/git/config");
  }
  if (!homes.empty()) user_configs_.push_back(homes.front() + "/.gitconfig");
  const char* global = std::getenv("GIT_CONFIG_GLOBAL");  // instead of it
  if (global != nullptr && global[0] == '/') user_configs_.emplace_back(global);
}

std::optional<FollowedPath> GitPrograms::follow(const std::string& path) const {
  return followPath(root_, workspace_, outside_, path);
}

std::optional<std::string> GitPrograms::canonical(const std::string& base, std::string_view value) const {
  const auto absolute = absolutePath(base, value);
  auto end = absolute ? follow(*absolute) : std::nullopt;
  return end ? std::optional(std::move(end->path)) : std::nullopt;
}

std::optional<std::string> GitPrograms::read(const std::string& path, bool& too_large) const {
  auto inside = plainPathBelow(workspace_, path);
  bool missing = false;
  if (!inside || passesLink(*inside, missing)) {
    const auto end = follow(path);
    inside = end ? pathBelow(workspace_, end->path) : std::nullopt;
    if (!inside) return readHostFile(path, too_large);
  }
  if (missing) return std::nullopt;
  auto text = root_.readFile(*inside, kMaxConfig);
  if (text) return *std::move(text);
  const auto info = root_.stat(*inside);
  too_large = info && info->size > kMaxConfig;
  return std::nullopt;
}

bool GitPrograms::passesLink(const std::string& path, bool& missing) const {
  const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  missing = opened == -ENOENT || opened == -ENOTDIR;
  if (opened < 0) return opened == -ELOOP;
  const sys::Fd fd(static_cast<int>(opened));
  struct stat status{};
  return ::fstat(fd.get(), &status) == 0 && S_ISLNK(status.st_mode);
}

std::string GitPrograms::line(const std::string& path) const {
  bool too_large = false;
  const std::string text = read(path, too_large).value_or("");
  return std::string(trimmed(text.substr(0, text.find('\n')), " \t\r"));
}

void GitPrograms::addFound(std::string path, const std::string& configuration, bool file) {
  // With so many, ProtectedLinks protects everything.
  constexpr std::size_t kMaxPrograms = 10'000;
  if (found_.size() >= kMaxPrograms || !named_.emplace(path, file).second) return;
  const auto shown = pathBelow(workspace_, configuration);
  found_.push_back({std::move(path), shown ? *shown : configuration, file});
}

void GitPrograms::name(const Repository& repository, const std::string& path, const std::string& configuration,
                       bool file) {
  // A command may name the whole work tree, which does not mean that it is executed.
  const std::string& tree = repository.work_tree.empty() ? workspace_ : repository.work_tree;
  // ProtectedLinks follows what is in the workspace, with all links that may be there.
  if (auto inside = plainPathBelow(workspace_, path)) {
    if (!holds(workspace_ + "/" + *inside, tree)) addFound(*std::move(inside), configuration, file);
    return;
  }
  const auto end = follow(path);
  if (!end) return;
  if (end->links.empty() && holds(end->path, tree)) return;
  if (holds(end->path, workspace_)) {
    addFound("", configuration, file);
  } else if (end->entered) {
    addFound(*end->entered, configuration, file);
  }
}

void GitPrograms::nameHooks(const Repository& repository, const std::string& path, const std::string& configuration) {
  const auto end = follow(path);
  if (!end) return;
  if (repository.work_tree.empty() || !holds(end->path, repository.work_tree)) {
    if (holds(end->path, workspace_)) return addFound("", configuration);
    return name(repository, path, configuration);
  }
  for (const std::string_view hook : policy::gitHookNames()) {  // hooksPath = "."
    name(repository, path + "/" + std::string(hook), configuration);
  }
}

bool GitPrograms::leadsIn(const std::string& path) const {
  if (pathBelow(workspace_, path)) return false;  // the search of the workspace finds those
  const auto end = follow(path);
  return end && pathBelow(workspace_, end->path);
}

void GitPrograms::nameUserFiles() {
  for (const std::string& config : user_configs_) {
    if (leadsIn(config)) name({}, config, config);
    const std::string attributes = parentOf(config) + "/attributes";
    if (nameOf(config) == "config" && leadsIn(attributes)) name({}, attributes, attributes);
  }
}

void GitPrograms::nameOwnFiles(const Repository& repository, const std::string& shared) {
  if (pathBelow(workspace_, repository.directory) && pathBelow(workspace_, shared)) return;
  for (const std::string& path :
       {shared + "/config", shared + "/info/attributes", repository.directory + "/config.worktree"}) {
    if (leadsIn(path)) name(repository, path, path);
  }
  const std::string hooks = shared + "/hooks";
  if (leadsIn(hooks)) return nameHooks(repository, hooks, hooks);
  for (const std::string_view hook : policy::gitHookNames()) {
    const std::string path = hooks + "/" + std::string(hook);
    if (leadsIn(path)) name(repository, path, path);
  }
}

const GitPrograms::Configuration& GitPrograms::configuration(const std::string& path) {
  if (known_.size() >= kMaxGitConfigs) known_.clear();  // a payload can make any number, and large ones
  const auto [known, added] = known_.try_emplace(path);
  if (added) {
    bool too_large = false;
    const auto text = read(path, too_large);
    if (text) known->second.paths = policy::pathsInGitConfig(*text);
    known->second.complete = !too_large && known->second.paths.complete;
  }
  return known->second;
}

std::string GitPrograms::sharedDirectory(const Repository& repository) const {
  const std::string common = line(repository.directory + "/commondir");
  if (common.empty()) return repository.directory;
  return canonical(repository.directory, common).value_or(repository.directory);
}

bool GitPrograms::add(Repository repository) {
  const std::string shared = sharedDirectory(repository);
  std::vector<std::string> configs = user_configs_;
  configs.push_back(shared + "/config");
  configs.push_back(repository.directory + "/config.worktree");
  nameOwnFiles(repository, shared);
  return addConfigs(std::move(repository), std::move(configs));
}

bool GitPrograms::addConfigs(Repository repository, std::vector<std::string> configs) {
  struct Value {
    std::string value, config;
    enum class Kind : std::uint8_t { executed, argument, hooks } kind;
  };
  std::vector<Value> values;
  bool complete = true;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (i >= kMaxGitConfigs) return false;
    const std::string config = configs[i];
    const auto& [paths, whole] = configuration(config);
    complete = complete && whole;
    if (!paths.work_tree.empty() && !repository.directory.empty()) {
      repository.work_tree = canonical(repository.directory, paths.work_tree).value_or(repository.work_tree);
    }
    for (const std::string& value : paths.executed) values.push_back({value, config, Value::Kind::executed});
    for (const std::string& value : paths.arguments) values.push_back({value, config, Value::Kind::argument});
    for (const std::string& value : paths.hooks) values.push_back({value, config, Value::Kind::hooks});
    for (const std::string& value : paths.included) {
      auto path = absolutePath(parentOf(config), value);
      if (!path) continue;
      name(repository, *path, config);
      configs.push_back(*std::move(path));
    }
  }
  for (const auto& [value, config, kind] : values) {
    // Without a repository, a relative path is one of another work tree.
    if (repository.work_tree.empty() && !value.starts_with('/') && !value.starts_with('~')) continue;
    const auto path = absolutePath(repository.work_tree, value);
    if (!path) continue;
    if (kind == Value::Kind::hooks) {
      nameHooks(repository, *path, config);
    } else {
      name(repository, *path, config, kind == Value::Kind::argument);
    }
  }
  return complete;
}

std::optional<GitPrograms::Repository> GitPrograms::repositoryOf(const std::string& git_file) const {
  constexpr std::string_view kPrefix = "gitdir:";
  const std::string text = line(git_file);
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto directory = canonical(parentOf(git_file), trimmed(std::string_view(text).substr(kPrefix.size())));
  if (!directory) return std::nullopt;
  return Repository{*directory, parentOf(git_file)};
}

bool GitPrograms::addDirectory(const std::string& path) {
  const std::string directory = path.empty() ? workspace_ : workspace_ + "/" + path;
  const bool named = policy::foldName(nameOf(directory)) == ".git";
  Repository repository{directory, named ? parentOf(directory) : directory};
  // That of a worktree names the worktree's `.git` file.
  if (const std::string file = line(directory + "/gitdir"); !file.empty()) {
    if (const auto absolute = absolutePath(directory, file)) {
      repository.work_tree = canonical("/", parentOf(*absolute)).value_or(repository.work_tree);
    }
  }
  return add(std::move(repository));
}

bool GitPrograms::addFile(const std::string& path) {
  auto repository = repositoryOf((path.empty() ? workspace_ : workspace_ + "/" + path) + "/.git");
  return !repository || add(*std::move(repository));
}

bool GitPrograms::addAbove() {
  nameUserFiles();
  bool complete = addConfigs({}, user_configs_);
  for (std::string at = workspace_; at != "/";) {
    at = parentOf(at);
    const std::string git = (at == "/" ? "" : at) + "/.git";
    const Found there = find(git);
    if (there.type == 0 || !there.ours) continue;  // git ignores what another user may have made in /tmp
    auto repository = S_ISDIR(there.type) ? std::optional<Repository>({git, at}) : repositoryOf(git);
    if (!repository) continue;
    repository->directory = canonical("/", repository->directory).value_or(repository->directory);
    if (!add(*std::move(repository))) complete = false;
  }
  return complete;
}

}  // namespace caisson::host
