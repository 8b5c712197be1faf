#include "host/git_programs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/path_parts.h"
#include "base/text.h"
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
  std::vector<std::string> parts;
  for (const std::string_view part : split(whole, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return "/" + joined(parts, "/");
}

std::optional<std::string> pathBelow(const std::string& directory, const std::string& path) {
  if (path == directory) return "";
  const std::string prefix = directory == "/" ? "/" : directory + "/";
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
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

GitPrograms::GitPrograms(const sys::RootDir& root, const std::string& workspace) : root_(root), workspace_(workspace) {
  user_configs_.emplace_back("/etc/gitconfig");
  const auto homes = sys::homeDirectories();
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && config[0] == '/') {
    user_configs_.push_back(std::string(config) + "/git/config");
  } else if (!homes.empty()) {
    user_configs_.push_back(homes.front() + "/.config/git/config");
  }
  if (!homes.empty()) user_configs_.push_back(homes.front() + "/.gitconfig");
}

std::optional<std::string> GitPrograms::read(const std::string& path, bool& too_large) const {
  const auto inside = pathBelow(workspace_, path);
  if (!inside) return readHostFile(path, too_large);
  auto text = root_.readFile(*inside, kMaxConfig);
  if (text) return *std::move(text);
  const auto info = root_.stat(*inside);
  too_large = info && info->size > kMaxConfig;
  return std::nullopt;
}

std::string GitPrograms::line(const std::string& path) const {
  bool too_large = false;
  const std::string text = read(path, too_large).value_or("");
  return std::string(trimmed(text.substr(0, text.find('\n')), " \t\r"));
}

void GitPrograms::addFound(std::string path, const std::string& configuration) {
  // With so many, ProtectedLinks protects everything.
  constexpr std::size_t kMaxPrograms = 10'000;
  if (found_.size() >= kMaxPrograms || !named_.insert(path).second) return;
  const auto shown = pathBelow(workspace_, configuration);
  found_.push_back({std::move(path), shown ? *shown : configuration});
}

void GitPrograms::name(const Repository& repository, const std::string& path, const std::string& configuration) {
  // A command may name the whole work tree, which does not mean that it is executed.
  if (repository.work_tree.empty() ? holds(path, workspace_) : holds(path, repository.work_tree)) return;
  if (auto inside = pathBelow(workspace_, path)) {
    addFound(*std::move(inside), configuration);
  } else if (holds(path, workspace_)) {
    addFound("", configuration);
  }
}

void GitPrograms::nameHooks(const Repository& repository, const std::string& path, const std::string& configuration) {
  if (repository.work_tree.empty() || !holds(path, repository.work_tree)) {
    if (holds(path, workspace_)) return addFound("", configuration);
    return name(repository, path, configuration);
  }
  for (const std::string_view hook : policy::gitHookNames()) {  // hooksPath = "."
    auto inside = pathBelow(workspace_, (path == "/" ? "" : path) + "/" + std::string(hook));
    if (inside) addFound(*std::move(inside), configuration);
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

bool GitPrograms::add(Repository repository) {
  const std::string common = line(repository.directory + "/commondir");
  const std::string shared =
      common.empty() ? repository.directory : absolutePath(repository.directory, common).value_or(repository.directory);
  std::vector<std::string> configs = user_configs_;
  configs.push_back(shared + "/config");
  configs.push_back(repository.directory + "/config.worktree");
  return addConfigs(std::move(repository), std::move(configs));
}

bool GitPrograms::addConfigs(Repository repository, std::vector<std::string> configs) {
  struct Value {
    std::string value, config;
    bool hooks = false;
  };
  std::vector<Value> executed;
  bool complete = true;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (i >= kMaxGitConfigs) return false;
    const std::string config = configs[i];
    const auto& [paths, whole] = configuration(config);
    complete = complete && whole;
    if (!paths.work_tree.empty() && !repository.directory.empty()) {
      repository.work_tree = absolutePath(repository.directory, paths.work_tree).value_or(repository.work_tree);
    }
    for (const std::string& value : paths.executed) executed.push_back({value, config});
    for (const std::string& value : paths.hooks) executed.push_back({value, config, true});
    for (const std::string& value : paths.included) {
      auto path = absolutePath(parentOf(config), value);
      if (!path) continue;
      name(repository, *path, config);
      configs.push_back(*std::move(path));
    }
  }
  for (const auto& [value, config, hooks] : executed) {
    // Without a repository, a relative path is one of another work tree.
    if (repository.work_tree.empty() && !value.starts_with('/') && !value.starts_with('~')) continue;
    const auto path = absolutePath(repository.work_tree, value);
    if (path) hooks ? nameHooks(repository, *path, config) : name(repository, *path, config);
  }
  return complete;
}

std::optional<GitPrograms::Repository> GitPrograms::repositoryOf(const std::string& git_file) const {
  constexpr std::string_view kPrefix = "gitdir:";
  const std::string text = line(git_file);
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const auto directory = absolutePath(parentOf(git_file), trimmed(std::string_view(text).substr(kPrefix.size())));
  if (!directory) return std::nullopt;
  return Repository{*directory, parentOf(git_file)};
}

bool GitPrograms::addDirectory(const std::string& path) {
  const std::string directory = path.empty() ? workspace_ : workspace_ + "/" + path;
  const bool named = policy::foldName(nameOf(directory)) == ".git";
  Repository repository{directory, named ? parentOf(directory) : directory};
  // That of a worktree names the worktree's `.git` file.
  if (const std::string file = line(directory + "/gitdir"); !file.empty()) {
    if (const auto absolute = absolutePath(directory, file)) repository.work_tree = parentOf(*absolute);
  }
  return add(std::move(repository));
}

bool GitPrograms::addFile(const std::string& path) {
  auto repository = repositoryOf((path.empty() ? workspace_ : workspace_ + "/" + path) + "/.git");
  return !repository || add(*std::move(repository));
}

bool GitPrograms::addAbove() {
  bool complete = addConfigs({}, user_configs_);
  for (std::string at = workspace_; at != "/";) {
    at = parentOf(at);
    const std::string git = (at == "/" ? "" : at) + "/.git";
    const Found there = find(git);
    if (there.type == 0 || !there.ours) continue;  // git ignores what another user may have made in /tmp
    auto repository = S_ISDIR(there.type) ? std::optional<Repository>({git, at}) : repositoryOf(git);
    if (repository && !add(*std::move(repository))) complete = false;
  }
  return complete;
}

}  // namespace caisson::host
