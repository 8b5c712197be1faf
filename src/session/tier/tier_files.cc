#include "session/tier/tier_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "plan/workspace.h"
#include "session/client/as_payload.h"
#include "session/client/tree_copy.h"
#include "session/store/removal.h"
#include "session/store/store_files.h"
#include "session/store/unreadable.h"
#include "session/store/workspace_root.h"
#include "sys/descriptor_path.h"
#include "sys/state_home.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr const char* kTierDirectory = "tier";   // in a session's directory
constexpr const char* kSessionFile = "session";  // below /var/tmp: names the session's directory
constexpr std::uint64_t kMaxCopied = 8 * policy::kGiB;

std::string passableDirectory() { return "/var/tmp/caisson-sessions-" + std::to_string(::geteuid()); }

Result<RootDir> openPassable(const std::string& path) {
  auto opened = sys::openPrivateDirectory(path);
  if (!opened) return fail(opened.error());
  if (::fchmod(opened->get(), 0711) != 0) return fail(sysError(Stage::state, "fchmod", path, errno));
  return RootDir::adopt(std::move(*opened), {.known_as = path});
}

/// Whether there can be files of ours. Anyone can take the name in /var/tmp; and in a user namespace the directory may
/// be that of the machine's root.
bool hasPassable() {
  struct stat status;
  return ::geteuid() == 0 && ::lstat(passableDirectory().c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

/// Makes a directory that the session's user owns.
Result<RootDir> makeOwned(const RootDir& files, const std::string& name, uid_t owner) {
  if (auto made = files.makeDirs(name, 0700); !made) return fail(made.error());
  auto directory = files.enter(name);
  if (directory && owner != 0 && ::fchownat(directory->descriptor(), "", owner, owner, AT_EMPTY_PATH) != 0) {
    return fail(sysError(Stage::state, "chown", directory->knownAs(), errno));
  }
  return directory;
}

Result<void> replaceCredentials(const RootDir& copy, const Metadata& metadata, const plan::WorkspaceScan& scan) {
  const AsPayload identity(metadata.payload_id);
  for (const plan::ReplacedFile& file : scan.redacted) {
    const auto there = copy.stat(file.path);
    if (!there) continue;  // left out
    if (auto written = copy.writeFileAtomic(file.path, file.content, there->mode & 0777); !written) return written;
  }
  return {};
}

/// Whether no session uses these files: the directory of theirs is gone, or they have long been without the name of
/// one, which is written right after they are made.
bool isAbandoned(const RootDir& all, const std::string& name) {
  const auto session = all.readFile(name + "/" + kSessionFile, PATH_MAX);
  if (session) return ::access(session->c_str(), F_OK) != 0 && errno == ENOENT;
  const auto files = all.enter(name);
  return session.error().sys_errno == ENOENT && files && secondsUnchanged(*files) > kSessionGraceSeconds;
}

/// Removes the files of a session, under another name: a killed process can leave them without the file that names
/// their session, and the next clean-up must still know that they are to be removed.
Result<void> removeHidden(const RootDir& all, const std::string& id) {
  const std::string gone = std::string(kGone) + id;
  if (auto renamed = all.rename(id, gone, false); !renamed && renamed.error().sys_errno != ENOENT) return renamed;
  return all.removeTree(gone);
}

}  // namespace

bool inLandlockTier(const policy::Policy& policy) {
  return policy.isolation.tier == policy::Tier::landlock && policy.isolation.level != policy::Level::none;
}

bool writesDirectly(const Metadata& metadata) {
  return metadata.policy.filesystem.workspace.mode == policy::WorkspaceMode::rw && !metadata.workspace.empty();
}

Result<RootDir> openTierFiles(const SessionPaths& paths, const Metadata& metadata) {
  if (metadata.payload_id != 0 && ::geteuid() == 0) {
    auto all = openPassable(passableDirectory());
    if (!all) return all;
    auto files = openPassable(all->knownAs() + "/" + metadata.id);
    if (!files || files->stat(kSessionFile)) return files;
    const auto sessions = sys::canonicalPath(paths.sessions().descriptor());
    if (!sessions) return fail(sessions.error());
    if (auto named = files->writeFileAtomic(kSessionFile, *sessions + "/" + metadata.id, 0600); !named)
      return fail(named.error());
    return files;
  }
  const std::string name = metadata.id + "/" + kTierDirectory;
  if (auto made = paths.sessions().makeDirs(name, 0700); !made) return fail(made.error());
  return paths.sessions().enter(name);
}

Result<RootDir> openTierWorkspace(const SessionPaths& paths, const Metadata& metadata) {
  if (writesDirectly(metadata)) return openRealDirectory(metadata);
  auto files = openTierFiles(paths, metadata);
  if (!files) return files;
  return files->enter(metadata.upper);
}

Result<void> copyWorkspace(const SessionPaths& paths, const Metadata& metadata, const plan::WorkspaceScan& scan) {
  auto files = openTierFiles(paths, metadata);
  if (!files) return fail(files.error());
  auto copy = makeOwned(*files, metadata.upper, metadata.payload_id);
  if (!copy) return fail(copy.error());
  auto base = makeOwned(*files, kBaseLayer, 0);
  if (!base) return fail(base.error());
  if (metadata.workspace.empty()) return {};
  auto real = openRealDirectory(metadata);
  if (!real) return fail(real.error());
  const std::uint64_t most = metadata.policy.filesystem.max_total_size.value_or(kMaxCopied);
  std::uint64_t copied = 0;
  TreeCopyOptions options{.exact_mode = true, .keep_times = true};
  options.reserve = [&](std::uint64_t bytes) -> Result<void> {
    copied += bytes;
    if (copied <= most) return {};
    return fail(sysError(Stage::limits, "session create", metadata.workspace, EDQUOT,
                         "the landlock tier copies the workspace, and it is larger than " +
                             std::to_string(most >> 20U) + " MiB: use --workspace DIR:rw, or name a part of it"));
  };
  options.skip = [hidden = scan.hidden()](const std::string& path) {
    return std::ranges::any_of(hidden, [&](const std::string& name) { return plan::below(path, name); });
  };
  if (auto done = copyTree({&*real, ".", 0}, {&*copy, "", metadata.payload_id}, options); !done)
    return fail(done.error());
  if (auto replaced = replaceCredentials(*copy, metadata, scan); !replaced) return replaced;
  auto done = copyTree({&*copy, ".", metadata.payload_id}, {&*base, "", 0}, {.exact_mode = true});
  if (!done) return fail(done.error());
  return {};
}

Result<void> advanceBase(const SessionPaths& paths, const Metadata& metadata,
                         const std::vector<ManifestEntry>& committed) {
  auto files = openTierFiles(paths, metadata);
  if (!files) return fail(files.error());
  auto copy = files->enter(metadata.upper);
  auto base = files->enter(kBaseLayer);
  if (!copy || !base) return fail(copy ? base.error() : copy.error());
  for (const ManifestEntry& one : committed) {
    const bool directory = one.kind != ChangeKind::deleted && one.type == "directory";
    const auto there = base->stat(one.path);
    if (there && !(directory && there->type == sys::FileType::directory)) {
      if (auto removed = base->removeTree(one.path); !removed) return removed;
    }
    if (one.kind == ChangeKind::deleted) continue;
    const std::size_t slash = one.path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : one.path.substr(0, slash);
    const std::string name = slash == std::string::npos ? one.path : one.path.substr(slash + 1);
    // Of a directory only itself: what is in it may be held back or left for another commit.
    const TreeCopyOptions options{.exact_mode = true, .only = name};
    auto done = copyTree({&*copy, parent.empty() ? "." : parent, metadata.payload_id}, {&*base, parent, 0}, options);
    if (!done) return fail(done.error());
    if (!directory) continue;
    const auto opened = base->openFile(one.path, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
    if (opened) (void)::fchmod(opened->get(), one.mode & 0777);
  }
  return {};
}

Result<void> removeTierFiles(const std::string& id) {
  if (!hasPassable()) return {};
  auto all = openPassable(passableDirectory());
  if (!all) return fail(all.error());
  const std::string gone = std::string(kGone) + id;
  const Removal removal = beginRemoval(*all, all->stat(gone) ? gone : id);
  return removeHidden(*all, id);
}

void removeAbandonedTierFiles() {
  if (!hasPassable()) return;
  const auto all = openPassable(passableDirectory());
  const auto entries = all ? all->list("") : fail(all.error());
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    const bool hidden = entry.name.starts_with(kGone);
    if (!hidden && !isAbandoned(*all, entry.name)) continue;
    const Removal removal = beginRemoval(*all, entry.name);
    if (removal.elsewhere) continue;
    (void)removeHidden(*all, hidden ? entry.name.substr(kGone.size()) : entry.name);
  }
}

}  // namespace caisson::session
