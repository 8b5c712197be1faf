#include "host/secret_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/path_parts.h"
#include "host/git_programs.h"
#include "host/link_end.h"
#include "isolation/child.h"
#include "plan/secrets.h"
#include "policy/rules/git_config.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

constexpr std::size_t kKeyBytes = 64 * 1024;  ///< of a file that are searched for a private key
constexpr std::size_t kConfigBytes = 64 * 1024;
constexpr std::size_t kMaxConfigs = 1000;  ///< of one directory, with what they include

/// The name of an object in a git repository: the rest of a digest, which says nothing about its content.
bool isObjectName(std::string_view name) {
  return (name.size() == 38 || name.size() == 62) &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Git's configurations of a tree, which may be in any directory.
constexpr std::string_view kTreeConfigs[] = {".gitmodules", ".gitconfig", ".lfsconfig"};

/// Whether a file of this name may be a git configuration, or a copy of one in a git directory.
bool mayBeConfig(std::string_view name) {
  return name.starts_with("config") || std::ranges::find(kTreeConfigs, name) != std::end(kTreeConfigs);
}

}  // namespace

bool SecretSearch::matters(std::string_view name) {
  // A repository has thousands of objects.
  return !isObjectName(name) && (plan::looksSecret(name) || plan::mayHoldKey(name) || mayBeConfig(name));
}

void SecretSearch::hideFile(std::string path, const std::string& name) {
  if (isSecret(path, name)) found_.secrets.push_back(std::move(path));
}

void SecretSearch::hideLink(std::string path, const std::string& name, bool hold_links) {
  if (!(plan::looksSecret(name) || plan::mayHoldKey(name))) return;
  std::vector<std::string> passed;
  auto end = linkEnd(root_, workspace_, path, &passed);
  if (end && !isRegular(*end)) end.reset();  // what is below a directory is judged by its name
  const bool secret = isSecret(end ? *end : path, name);
  if (secret || (!end && plan::looksSecret(name))) found_.secrets.push_back(std::move(path));
  if (!secret || !end || plan::isTemplate(nameOf(*end))) return;
  found_.secrets.push_back(*std::move(end));
  if (hold_links) std::ranges::move(passed, std::back_inserter(found_.secrets));
}

bool SecretSearch::isRegular(const std::string& path) const {
  const auto info = root_.stat(path);
  return info && info->type == sys::FileType::regular;
}

bool SecretSearch::isSecret(const std::string& path, const std::string& name) {
  if (plan::looksSecret(name)) {
    return !plan::mayBePublic(name) || !plan::hasOnlyPublicKeys(beginning(path, kKeyBytes).value_or(""));
  }
  if (!plan::mayHoldKey(name)) return false;
  const auto text = beginning(path, kKeyBytes);
  return !text || plan::hasPrivateKey(*text);
}

void SecretSearch::redactConfigs(const std::string& directory, const std::vector<std::string>& names, bool git) {
  std::vector<std::string> configs;
  const bool users = nameOf(directory.empty() ? workspace_ : directory) == "git";  // ~/.config/git/config
  for (const std::string& name : names) {
    if (mayBeConfig(name) && (git || (users && name == "config") || name.starts_with('.'))) {
      configs.push_back(join(directory, name));
    }
  }
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const std::string config = configs[i];
    if (!configs_.insert(config).second) continue;
    if (i >= kMaxConfigs) {
      found_.secrets.push_back(config);
      continue;
    }
    const auto read = beginning(config, kConfigBytes + 1);
    const std::string text = read.value_or("");
    if (!read || text.size() > kConfigBytes) {  // credentials may be beyond what is searched
      found_.secrets.push_back(config);
      continue;
    }
    if (auto redacted = plan::redactGitConfig(text)) found_.redacted.push_back({config, std::move(*redacted)});
    for (const std::string& value : policy::pathsInGitConfig(text).included) {
      const auto named = absolutePath(workspace_ + "/" + directoryOf(config), value);
      auto inside = named ? pathBelow(workspace_, *named) : std::nullopt;
      if (!inside || inside->empty()) continue;
      if (auto end = linkEnd(root_, workspace_, *inside)) configs.push_back(*std::move(end));
      configs.push_back(*std::move(inside));
    }
  }
}

bool SecretSearch::mayOpen(const std::string& path) const {
  const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return opened == -EACCES;
  const sys::Fd fd(static_cast<int>(opened));
  struct stat status{};
  return ::fstat(fd.get(), &status) != 0 || status.st_uid == ::geteuid();
}

std::optional<std::string> SecretSearch::beginning(const std::string& path, std::size_t bytes) {
  ++reads_;
  const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened == -EACCES && mayOpen(path)) return std::nullopt;
  if (opened < 0) return "";
  const sys::Fd fd(static_cast<int>(opened));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  std::string text(std::min(bytes, static_cast<std::size_t>(status.st_size)), '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace caisson::host
