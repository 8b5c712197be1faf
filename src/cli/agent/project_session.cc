#include "cli/agent/project_session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>

#include "base/sha256.h"
#include "cli/options.h"
#include "policy/model.h"
#include "sys/home_directory.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxShownName = 24;
constexpr std::size_t kDigestLetters = 10;

/// Whether git of this user would work there: in a directory that all users may write to, such as /tmp, another user
/// can make a .git.
bool isOwnRepository(const fs::path& directory) {
  struct stat status{};
  return ::lstat((directory / ".git").c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

}  // namespace

Result<std::string> projectDirectory(const std::string& directory) {
  std::error_code problem;
  const fs::path begin = fs::canonical(directory, problem);
  if (problem) return fail(sysError(Stage::usage, "realpath", directory, problem.value()));
  if (sys::holdsHome(begin.string()))
    return fail(usageError(begin.string(), "a home directory, or one above it, is not a project",
                           "start the agent in the directory of a project"));
  for (fs::path at = begin; !sys::holdsHome(at.string()); at = at.parent_path())
    if (isOwnRepository(at)) return at.string();
  return begin.string();
}

std::string projectSessionName(const std::string& project) {
  std::string shown = fs::path(project).filename().string().substr(0, kMaxShownName);
  std::ranges::replace_if(shown, [](unsigned char letter) { return letter > 0x7E || std::isalnum(letter) == 0; }, '-');
  return "agent-" + shown + "-" + hex(Sha256().add(project).finish()).substr(0, kDigestLetters);
}

Result<void> checkProjectSession(Session& session, const std::string& project) {
  const auto info = session.info();
  if (!info) return fail(info.error());
  // In the landlock tier the directory is that of the session's copy.
  const bool same_path = info->directory == project || info->directory != "/workspace";
  if (info->workspace == project && same_path) return {};
  const std::string name = projectSessionName(project);
  return fail(plainError(
      Stage::state, "agent", name,
      "the session with the name of this project's session shows " +
          (info->workspace.empty() ? "no directory" : info->workspace + " at " + info->directory) + ", not " + project,
      "look at it with `caisson session diff " + name + "`, then `caisson session destroy " + name + "`"));
}

Result<Session> openProjectSession(SessionStore& store, const std::string& project, const Policy& policy) {
  const std::string name = projectSessionName(project);
  auto found = store.find(name);
  if (found) {
    if (auto checked = checkProjectSession(*found, project); !checked) return fail(checked.error());
    const auto info = found->info();
    if (!info) return fail(info.error());
    if (info->expires_in > 0) return found;
    if (auto renewed = found->renew(kAgentSessionSeconds); !renewed) return fail(renewed.error());
    return found;
  }
  SessionOptions options{.policy = policy, .name = name, .ttl_seconds = kAgentSessionSeconds, .keep = true};
  options.policy.model().use = kAgentUse;
  policy::Workspace& workspace = options.policy.model().filesystem.workspace;
  workspace.path = project;
  workspace.same_path = true;
  auto created = store.create(options);
  if (created) return created;
  found = store.find(name);  // another command of the agent may have been faster
  if (!found) return fail(created.error());
  if (auto checked = checkProjectSession(*found, project); !checked) return fail(checked.error());
  return found;
}

}  // namespace caisson::cli
