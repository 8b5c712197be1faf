// Learn mode, files: proposes paths that the payload opened, that the sandbox does not show, and that the caller can
// access.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "cli/learn/draft.h"
#include "cli/learn/host_programs.h"
#include "cli/safe_text.h"
#include "plan/filesystem.h"
#include "policy/decode/syntax.h"
#include "policy/rules/secret_files.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxPaths = 64;
constexpr std::size_t kMaxRemarks = 16;

bool isBelow(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string_view lastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// Broad directories that must not be proposed because of one file.
bool isTooWide(std::string_view directory) {
  const auto depth = std::ranges::count(directory, '/');
  if (depth <= 1) return true;
  const bool of_many = directory.starts_with("/home/") || directory.starts_with("/usr/") ||
                       directory.starts_with("/var/") || directory.starts_with("/mnt/") ||
                       directory.starts_with("/media/");
  return of_many && depth == 2;
}

/// System programs and libraries, which every sandbox shows.
bool isSystem(std::string_view path) {
  return isBelow(path, "/usr") || isBelow(path, "/bin") || isBelow(path, "/sbin") || path.starts_with("/lib");
}

bool isSecret(const std::string& path) {
  const std::string_view above = std::string_view(path).substr(0, path.rfind('/'));
  if (policy::usuallySecret(above, lastPart(path)) || policy::isInSecretDirectory(path)) return true;
  return std::ranges::any_of(policy::homeSecrets(), [&](const policy::SecretPattern& one) {
    if (!one.pattern.starts_with('.')) return false;
    const std::string part = "/" + std::string(one.pattern);
    const std::size_t at = path.find(part);
    return at != std::string::npos && (at + part.size() == path.size() || path[at + part.size()] == '/');
  });
}

bool changes(FileOperation operation) {
  return operation == FileOperation::write || operation == FileOperation::create;
}

class Files {
 public:
  Files(Draft& draft, const policy::Policy& policy) : draft_(draft), policy_(policy) {
    if (!policy.filesystem.workspace.same_path) return;
    std::error_code ignored;
    const std::string& named = policy.filesystem.workspace.path;
    own_path_ = std::filesystem::canonical(named.empty() ? "." : named, ignored).string();
  }

  void consider(const FileRequest& request) {
    if (request.state == FileState::present) return;
    if (isBelow(request.path, plan::kHome)) return;
    if (request.state == FileState::hidden) return refuse(request, "is hidden by the policy, and stays so");
    if (request.state == FileState::noexec) {
      return refuse(request, "cannot be executed there (filesystem.workspace_exec, or `exec` of its directory)");
    }
    if (isBelow(request.path, plan::kWorkspace) || isBelow(request.path, own_path_)) return considerWorkspace(request);
    if (changes(request.operation)) return considerWrite(request);
    if (request.on_host == HostFile::absent) return;
    if (isSecret(request.path)) return refuse(request, "usually holds a secret, and is not proposed");
    if (request.operation == FileOperation::execute) return considerProgram(request);
    considerRead(request);
  }

  void propose() {
    // Programs stat the parent directories of a file. Propose a directory itself only if the path lookup ended there.
    for (const auto& [directory, looked] : looked_) {
      const auto further = [&](const auto& one) { return one.first != directory && isBelow(one.first, directory); };
      if (std::ranges::none_of(read_, further) && std::ranges::none_of(write_, further) &&
          std::ranges::none_of(looked_, further)) {
        read_[directory] = true;
      }
    }
    for (const auto& [path, wanted] : write_) read_.erase(path);
    std::erase_if(read_, [&](const auto& one) { return covered(one.first, write_) || covered(one.first, read_); });
    std::erase_if(write_, [&](const auto& one) { return covered(one.first, write_); });
    add("filesystem.read_only", policy_.filesystem.read_only, read_, "asked for, and not shown");
    add("filesystem.read_write", policy_.filesystem.read_write, write_, "tried to write there");
    if (policy_.process.allowed_executables) {
      add("process.allowed_executables", *policy_.process.allowed_executables, programs_, "tried to start");
    }
  }

 private:
  using Paths = std::map<std::string, bool>;

  static bool covered(const std::string& path, const Paths& others) {
    return std::ranges::any_of(others,
                               [&](const auto& other) { return other.first != path && isBelow(path, other.first); });
  }

  void refuse(const FileRequest& request, const std::string& words) {
    if (++remarks_ > kMaxRemarks) return draft_.refuse("... and more paths of that kind");
    draft_.refuse(request.path + " was asked for and " + words);
  }

  void considerWorkspace(const FileRequest& request) {
    if (request.state != FileState::read_only) return;
    draft_.set("filesystem.workspace.mode", "\"overlay\"",
               "tried to write " + request.path + "; its changes stay apart from the real files");
  }

  void considerProgram(const FileRequest& request) {
    if (request.on_host != HostFile::file || !request.host_executable) return;
    const auto& blocked = policy_.process.blocked_executables;
    const std::string name(lastPart(request.path));
    if (std::ranges::find(blocked, name) != blocked.end() || std::ranges::find(blocked, request.path) != blocked.end())
      return refuse(request, "is blocked (process.blocked_executables), and stays so");
    (policy_.process.allowed_executables ? programs_ : read_)[request.path] = true;
  }

  void considerRead(const FileRequest& request) {
    const bool opened = request.operation == FileOperation::read;
    // The sandbox has a private /etc, and every program looks for optional files there.
    if (isBelow(request.path, "/etc")) {
      if (opened && request.host_readable && ++remarks_ <= kMaxRemarks) {
        draft_.remark(request.path + " was asked for and is not in the sandbox's own /etc; --ro would show it");
      }
      return;
    }
    if (isSystem(request.path)) return;  // already shown, or blocked by a list; missing entries are links to /etc
    if (!request.host_readable) {
      if (opened) refuse(request, "is not yours to show");
      return;
    }
    if (request.on_host == HostFile::file) read_[request.path] = true;
    if (request.on_host != HostFile::directory) return;
    if (!isTooWide(request.path)) {
      (opened ? read_ : looked_)[request.path] = true;
    } else if (opened) {
      refuse(request, "holds too much to be shown for one program");
    }
  }

  void considerWrite(const FileRequest& request) {
    if (isSecret(request.path)) return refuse(request, "usually holds a secret, and is not proposed");
    if (request.on_host == HostFile::file && request.host_writable) {
      if (request.host_executable) return refuseWriting(request, "it is a program");
      if (const auto reason = programs().whyNotFile(request.path)) return refuseWriting(request, *reason);
      write_[request.path] = true;
    } else if (request.on_host == HostFile::absent && request.operation == FileOperation::create &&
               request.host_directory_writable && !isTooWide(request.host_directory)) {
      if (const auto reason = programs().whyNotFile(request.path)) return refuseWriting(request, *reason);
      if (const auto reason = whyNotDirectory(request.host_directory))
        return refuseWriting(request, request.host_directory + ": " + *reason);
      write_[request.host_directory] = true;
    } else if (request.on_host != HostFile::directory && request.operation == FileOperation::create) {
      refuse(request, "could not be written; filesystem.tmpfs.\"DIR\".size gives a program a private directory");
    }
  }

  /// The host would execute what the payload writes.
  void refuseWriting(const FileRequest& request, const std::string& reason) {
    refuse(request, "is not proposed for writing (" + reason + ")");
  }

  /// Made when it is needed: few runs are denied a write.
  const HostPrograms& programs() {
    if (!host_programs_) host_programs_.emplace();
    return *host_programs_;
  }

  /// Each directory is listed once.
  const std::optional<std::string>& whyNotDirectory(const std::string& directory) {
    const auto known = directories_.find(directory);
    if (known != directories_.end()) return known->second;
    return directories_.emplace(directory, programs().whyNotDirectory(directory)).first->second;
  }

  void add(const std::string& key, const std::vector<std::string>& now, const Paths& more, const std::string& why) {
    std::vector<std::string> all = now;
    if (key == "filesystem.read_only")
      std::erase_if(all, [&](const std::string& path) { return write_.contains(path); });
    std::size_t count = 0;
    for (const auto& [path, wanted] : more) {
      if (std::ranges::find(all, path) != all.end()) continue;
      // A name that cannot be displayed safely cannot be approved either.
      if (safeLine(path) != path || policy::findFlaw(policy::Syntax::shown_path, path)) {
        draft_.refuse("asked for, and its name is not one to put into a policy: " + path);
        continue;
      }
      if (++count > kMaxPaths) {
        draft_.remark(key + ": more than " + std::to_string(kMaxPaths) + " paths were asked for; name a directory");
        break;
      }
      all.push_back(path);
    }
    if (all != now) draft_.set(key, listOf(all), why);
  }

  std::string own_path_ = std::string(plan::kWorkspace);  ///< of the workspace, with same_path
  Draft& draft_;
  const policy::Policy& policy_;
  Paths read_, looked_, write_, programs_;
  std::optional<HostPrograms> host_programs_;
  std::map<std::string, std::optional<std::string>> directories_;  ///< why they are not proposed for writing
  std::size_t remarks_ = 0;
};

/// Lists started programs and unused paths, so that the user can also narrow the policy.
void tellUsedFiles(Draft& draft, const policy::Policy& policy, const RunResult& result) {
  constexpr std::size_t kMaxPrograms = 12;
  std::vector<std::string> programs;
  for (const FileRequest& request : result.files) {
    if (request.operation == FileOperation::execute && request.state == FileState::present)
      programs.push_back(request.path);
  }
  if (!programs.empty()) {
    const std::size_t more = programs.size() > kMaxPrograms ? programs.size() - kMaxPrograms : 0;
    programs.resize(programs.size() - more);
    draft.remark("used: programs " + listOf(programs) + (more > 0 ? " and " + std::to_string(more) + " more" : ""));
  }
  if (result.files.empty()) return;
  for (const auto& [key, paths] : {std::make_pair("read_only", &policy.filesystem.read_only),
                                   std::make_pair("read_write", &policy.filesystem.read_write)}) {
    for (const std::string& path : *paths) {
      const bool used = std::ranges::any_of(
          result.files, [&](const FileRequest& request) { return isBelow(request.path, policy::normalPath(path)); });
      if (!used) draft.remark("never asked for: " + path + " (filesystem." + key + "); it could be left out");
    }
  }
}

}  // namespace

void proposeFiles(Draft& draft, const policy::Policy& policy, const RunResult& result) {
  Files files(draft, policy);
  for (const FileRequest& request : result.files) files.consider(request);
  files.propose();
  tellUsedFiles(draft, policy, result);
}

}  // namespace caisson::cli
