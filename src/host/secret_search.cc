#include "host/secret_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/path_parts.h"
#include "host/followed_path.h"
#include "host/git_programs.h"
#include "isolation/child.h"
#include "plan/secrets.h"
#include "plan/workspace.h"
#include "policy/rules/git_config.h"
#include "policy/rules/git_config_shown.h"
#include "policy/rules/secret_content.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

constexpr std::size_t kConfigBytes = 64 * 1024;
constexpr std::size_t kMaxConfigs = 1000;  ///< of one directory, with what they include

/// The name of an object in a git repository: the rest of a digest, which says nothing about its content.
bool isObjectName(std::string_view name) {
  return (name.size() == 38 || name.size() == 62) &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Git's configurations of a tree, which may be in any directory.
constexpr std::string_view kTreeConfigs[] = {".gitmodules", ".gitconfig", ".lfsconfig"};

bool isTreeConfig(std::string_view name) {
  return name.starts_with('.') && std::ranges::find(kTreeConfigs, policy::foldName(name)) != std::end(kTreeConfigs);
}

/// Whether the name is that of a copy of a git configuration, or of one itself: "#config#".
bool isCopyOfConfig(std::string_view name) {
  if (name.find("config") == std::string_view::npos && name.find("gitmodules") == std::string_view::npos) return false;
  return std::ranges::any_of(policy::originalNames(name),
                             [](const std::string& one) { return policy::isConfigName(one) || isTreeConfig(one); });
}

/// Whether a file of this name may be a git configuration, or a copy of one in a git directory.
bool mayBeConfig(std::string_view name) {
  return name.starts_with("config") || policy::isConfigName(name) || isTreeConfig(name) || isCopyOfConfig(name);
}

policy::SecretJudgement judgeAt(const std::string& workspace, const std::string& path, const std::string& name,
                                bool directory) {
  const std::string above = directoryOf(path);
  return policy::judgeSecret(above.empty() ? workspace : workspace + "/" + above, name, directory);
}

/// Whether a file that is judged by its content is data, and shown. `beginning`: up to kFormatBytes of it.
bool isData(const policy::SecretJudgement& judged, std::string_view beginning, std::uint64_t size) {
  const bool known = size > beginning.size() && (judged.unnamed || (judged.checks & policy::kCheckPrivate) != 0) &&
                     policy::isKnownFormat(beginning);
  return known || (!judged.first_only && judged.bounded && size > policy::kMaxConfigurationBytes);
}

}  // namespace

bool isNamedSecret(const std::string& workspace, const std::string& path, bool directory,
                   const std::vector<std::string>& shown) {
  const std::string name = nameOf(path);
  if (!SecretSearch::matters(name)) return false;
  const auto keeps = [&](const std::string& one) { return one == path || (directory && plan::below(one, path)); };
  if (std::ranges::any_of(shown, keeps)) return false;
  return judgeAt(workspace, path, name, directory).verdict == policy::SecretVerdict::hide;
}

bool isSecretContent(const std::string& workspace, const std::string& path, std::string_view text, std::uint64_t size,
                     const std::vector<std::string>& shown) {
  const std::string name = nameOf(path);
  if (!SecretSearch::matters(name) || std::ranges::find(shown, path) != shown.end()) return false;
  if (mayBeConfig(name)) {
    const auto config = plan::shownConfig(text.substr(0, kConfigBytes));
    if (config ? config->changed : nameOf(directoryOf(path)) == ".git") return true;
  }
  const policy::SecretJudgement judged = judgeAt(workspace, path, name, false);
  if (judged.verdict != policy::SecretVerdict::by_content) return judged.verdict == policy::SecretVerdict::hide;
  if (isData(judged, text.substr(0, policy::kFormatBytes), size)) return false;
  const std::string_view read = text.substr(0, judged.first_only ? policy::kFormatBytes : policy::kMaxJudgedBytes);
  return policy::secretIn(judged, read, read.size() >= size).has_value();
}

bool SecretSearch::matters(std::string_view name) {
  // A repository has thousands of objects.
  return !isObjectName(name) && (policy::mayBeSecret(name) || mayBeConfig(name));
}

void SecretSearch::add(std::string path, std::string why) {
  found_.secret_kinds.try_emplace(path, std::move(why));
  found_.secrets.push_back(std::move(path));
}

bool SecretSearch::isShown(const std::string& path) const { return std::ranges::find(shown_, path) != shown_.end(); }

policy::SecretJudgement SecretSearch::judge(const std::string& path, const std::string& name, bool directory) const {
  return judgeAt(workspace_, path, name, directory);
}

bool SecretSearch::hideDirectory(const std::string& path, const std::string& name) {
  const policy::SecretJudgement judged = judge(path, name, true);
  if (judged.verdict != policy::SecretVerdict::hide || isShown(path)) return false;
  const auto below = [&](const std::string& one) { return plan::below(one, path); };
  if (std::ranges::any_of(shown_, below)) {
    hideAll(path, policy::name(judged.kind));
  } else {
    add(path, std::string(policy::name(judged.kind)));
  }
  return true;
}

void SecretSearch::hideAll(const std::string& directory, std::string_view kind) {
  const auto entries = root_.list(directory.empty() ? "." : directory);
  if (!entries) {
    if (!directory.empty()) add(directory, std::string(kind));
    return;
  }
  for (const sys::DirectoryEntry& entry : *entries) {
    std::string path = join(directory, entry.name);
    if (isShown(path)) continue;
    const auto below = [&](const std::string& one) { return plan::below(one, path); };
    if (std::ranges::any_of(shown_, below)) {
      hideAll(path, kind);
    } else {
      add(std::move(path), std::string(kind));
    }
  }
}

void SecretSearch::hideFile(std::string path, const std::string& name, bool git) {
  if (isShown(path)) return;
  policy::SecretJudgement judged = judge(path, name, false);
  // Also branches/NAME and remotes/NAME hold URLs.
  if (git && judged.verdict == policy::SecretVerdict::by_content) judged.checks |= policy::kCheckAllUrls;
  std::string why;
  if (const auto config = configs_.find(path);
      config != configs_.end() && judged.verdict != policy::SecretVerdict::hide) {
    // A configuration of git is shown without its credentials, but not what is secret anywhere else.
    const auto found =
        judged.verdict == policy::SecretVerdict::no ? std::nullopt : policy::secretIn(judged, config->second);
    if (found) why = std::string(policy::name(judged.kind)) + ": " + std::string(*found);
  } else {
    why = whySecret(path, judged);
  }
  if (!why.empty()) add(std::move(path), std::move(why));
}

void SecretSearch::hideKnown(std::string path, const std::string& name) {
  if (isShown(path)) return;
  const std::string kind(policy::name(judge(path, name, false).kind));
  add(std::move(path), kind);
}

void SecretSearch::hideLink(std::string path, const std::string& name, bool hold_links) {
  if (isShown(path)) return;
  const policy::SecretJudgement judged = judge(path, name, false);
  // A link whose name has no ending says nothing about a file, which is judged at its own place.
  if (judged.verdict == policy::SecretVerdict::no || judged.unnamed) return;
  std::vector<std::string> passed;
  auto end = linkEnd(root_, workspace_, outside_, path, &passed);
  if (end && !isRegular(*end)) end.reset();  // what is below a directory is judged by its name
  if (end && isShown(*end)) return;
  const std::string why = whySecret(end ? *end : path, judged);
  if (why.empty()) return;
  add(std::move(path), why);
  if (!end || policy::isTemplate(nameOf(*end))) return;
  add(*std::move(end), why);
  if (hold_links) std::ranges::move(passed, std::back_inserter(found_.secrets));
}

bool SecretSearch::isRegular(const std::string& path) const {
  const auto info = root_.stat(path);
  return info && info->type == sys::FileType::regular;
}

std::string SecretSearch::whySecret(const std::string& path, const policy::SecretJudgement& judged) {
  const std::string kind(policy::name(judged.kind));
  if (judged.verdict == policy::SecretVerdict::hide) return kind;
  if (judged.verdict == policy::SecretVerdict::no) return "";
  // A program or an archive need not be read to its end.
  auto read = beginning(path, policy::kFormatBytes);
  if (!read) return kind + ": closed to you";
  if (!read->regular) return (judged.checks & policy::kCheckPrivate) != 0 ? kind + ": not a file" : "";
  if (isData(judged, read->text, read->size)) return "";
  if (!judged.first_only && read->size > read->text.size()) read = beginning(path, policy::kMaxJudgedBytes);
  if (!read) return kind + ": closed to you";
  const auto why = policy::secretIn(judged, read->text, read->text.size() >= read->size);
  return why ? kind + ": " + std::string(*why) : "";
}

void SecretSearch::redactConfigs(const std::string& directory, const std::vector<std::string>& files,
                                 const std::vector<std::string>& links, bool git) {
  const bool users = nameOf(directory.empty() ? workspace_ : directory) == "git";  // ~/.config/git/config
  const auto is_config = [&](const std::string& name) {
    return mayBeConfig(name) && (git || (users && policy::isConfigName(name)) || name.starts_with('.'));
  };
  // What git reads, and the directory in which it looks for what that includes: of a link, the one that has the link.
  std::vector<std::pair<std::string, std::string>> configs;
  for (const std::string& name : files) {
    if (is_config(name)) configs.emplace_back(join(directory, name), directory);
  }
  for (const std::string& name : links) {
    if (!is_config(name)) continue;
    auto end = linkEnd(root_, workspace_, outside_, join(directory, name));
    if (end) configs.emplace_back(*std::move(end), directory);
  }
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const auto [config, base] = configs[i];
    if (isShown(config) || !read_configs_.insert(base + "//" + config).second) continue;
    if (i >= kMaxConfigs) {
      add(config, std::string(policy::name(policy::SecretKind::version_control)));
      continue;
    }
    const bool of_directory = git && directoryOf(config) == directory && isCopyOfConfig(nameOf(config));
    auto known = included_.find(config);
    if (known == included_.end()) known = included_.emplace(config, redactConfig(config, of_directory)).first;
    const std::vector<std::string> included = known->second;
    for (const std::string& from : {base, directoryOf(config)}) {
      for (const std::string& value : included) {
        const auto named = absolutePath(workspace_ + "/" + from, value);
        const auto end = named ? followPath(root_, workspace_, outside_, *named) : std::nullopt;
        auto inside = end ? pathBelow(workspace_, end->path) : std::nullopt;
        const auto beside = named ? pathBelow(workspace_, *named) : std::nullopt;
        if (inside && !inside->empty()) {
          std::string here = beside ? directoryOf(*beside) : directoryOf(*inside);
          configs.emplace_back(*std::move(inside), std::move(here));
        }
      }
      if (base == directoryOf(config)) break;
    }
  }
}

std::vector<std::string> SecretSearch::redactConfig(const std::string& config, bool of_directory) {
  const auto read = beginning(config, kConfigBytes + 1);
  auto shown = read ? plan::shownConfig(read->text) : std::nullopt;
  // Credentials may be beyond what is searched, and in what git would refuse.
  if (!read || read->text.size() > kConfigBytes || (!shown && of_directory)) {
    add(config, std::string(policy::name(policy::SecretKind::version_control)));
    return {};
  }
  if (!shown) return {};
  if (shown->changed) found_.redacted.push_back({config, shown->text});
  configs_.emplace(config, std::move(shown->text));
  return policy::pathsInGitConfig(read->text).included;
}

bool SecretSearch::isRepositoryConfig(const std::string& path) {
  const auto read = beginning(path, kConfigBytes);
  return !read || policy::isRepositoryConfig(read->text);
}

bool SecretSearch::mayOpen(const std::string& path) const {
  const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return opened == -EACCES;
  const sys::Fd fd(static_cast<int>(opened));
  struct stat status{};
  return ::fstat(fd.get(), &status) != 0 || status.st_uid == ::geteuid();
}

std::optional<SecretSearch::FileText> SecretSearch::beginning(const std::string& path, std::size_t bytes) {
  ++reads_;
  const long opened = isolation::openBeneath(root_.descriptor(), path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (opened == -EACCES && mayOpen(path)) return std::nullopt;
  FileText read;
  if (opened < 0) return read;
  const sys::Fd fd(static_cast<int>(opened));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return read;
  read.regular = true;
  read.size = static_cast<std::uint64_t>(status.st_size);
  read.text.resize(std::min<std::uint64_t>(bytes, read.size));
  std::size_t got = 0;
  while (got < read.text.size()) {
    const ssize_t more = ::read(fd.get(), read.text.data() + got, read.text.size() - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return std::nullopt;  // what cannot be read is not shown
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  read.text.resize(got);
  if (got < bytes) read.size = got;  // it was cut meanwhile
  return read;
}

}  // namespace caisson::host
