// copyIn and copyOut: files and trees between the host and a session's workspace.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "session/client/as_payload.h"
#include "session/client/copy_guard.h"
#include "session/client/session_context.h"
#include "session/client/tree_copy.h"
#include "session/commit/own_paths.h"
#include "sys/descriptor_path.h"

namespace caisson::session {
namespace {

using sys::FileType;
using sys::RootDir;

/// A host path named by the user: its directory, and the name there.
struct HostPath {
  std::string directory, name;
};

Error noSuchPath(const std::string& path, int error) {
  return sysError(Stage::usage, "session cp", path, error, "name an existing file or directory of the host");
}

/// Follows links in a path that the user typed, like any program.
Result<HostPath> hostSource(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (!real) return fail(noSuchPath(path, errno));
  const std::string whole = real.get();
  const std::size_t slash = whole.rfind('/');
  if (whole == "/") return fail(plainError(Stage::usage, "session cp", path, "the root is not copied", "name a part"));
  return HostPath{slash == 0 ? "/" : whole.substr(0, slash), whole.substr(slash + 1)};
}

bool isHostDirectory(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Where a copy of `name` goes if the user named `path`, as for cp: into an existing directory, else to that path
/// itself.
Result<HostPath> hostTarget(const std::string& path, const std::string& name) {
  if (path.empty()) return fail(noSuchPath(path, ENOENT));
  if (name == "..")
    return fail(plainError(Stage::usage, "session cp", name, "a path that ends in \"..\" is not copied"));
  if (isHostDirectory(path)) return HostPath{path, name};
  const std::size_t end = path.find_last_not_of('/');
  const std::string whole = path.substr(0, end + 1);
  const std::size_t slash = whole.rfind('/');
  const std::string last = slash == std::string::npos ? whole : whole.substr(slash + 1);
  if (last == "." || last == "..") return fail(noSuchPath(path, ENOENT));
  return HostPath{slash == std::string::npos ? "." : slash == 0 ? "/" : whole.substr(0, slash), last};
}

/// The last name of a path inside; "workspace" for the workspace itself.
std::string lastName(std::string_view path) {
  while (path.ends_with('/') || path == "." || path.ends_with("/.")) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name.empty() ? "workspace" : std::string(name);
}

}  // namespace

Result<CopyReport> SessionContext::copyIn(const std::string& from, std::string_view to) {
  to = withoutLink(to);
  auto source = hostSource(from);
  if (!source) return fail(source.error());
  auto host = RootDir::open(source->directory);
  if (!host) return fail(host.error());
  const OwnPaths own(source->directory);
  const auto withhold = [&](const std::string& path) {
    return std::string(own.contain(path) ? "caisson's own configuration or state" : "");
  };
  CopyReport report;
  forgetRoom();
  std::uint64_t pending = 0;  // the file that is being copied
  const auto reserve = [&](std::uint64_t bytes) {
    noteWritten(std::exchange(pending, 0));
    auto reserved = reserveRoom(bytes, 64U << 20);
    if (reserved) pending = bytes;
    return reserved;
  };
  auto copied = useWorkspace([&](const RootDir& root) -> Result<void> {
    auto target = [&]() -> Result<RootDir> {
      const AsPayload identity(metadata_.payload_id);
      return root.enter(to);
    }();
    std::string name = source->name;
    if (!target) {
      if (target.error().sys_errno != ENOENT && target.error().sys_errno != ENOTDIR) return fail(target.error());
      // `to` is not a directory: the copy gets its last part as name.
      const std::string path(to.substr(0, to.find_last_not_of('/') + 1));
      const std::size_t slash = path.rfind('/');
      const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
      name = slash == std::string::npos ? path : path.substr(slash + 1);
      if (name.empty() || name == "." || name == "..") return fail(target.error());
      const AsPayload identity(metadata_.payload_id);
      if (auto made = root.makeDirs(parent, kNewDirectoryMode); !made && !parent.empty()) return made;
      target = root.enter(parent);
      if (!target) return fail(target.error());
    }
    auto done = copyTree({&*host, source->name, 0}, {&*target, name, metadata_.payload_id},
                         {.exact_mode = true, .withhold = withhold, .reserve = reserve});
    if (!done) return fail(done.error());
    report = std::move(*done);
    return {};
  });
  noteWritten(pending);
  forgetRoom();
  if (!copied) return fail(copied.error());
  return report;
}

Result<CopyReport> SessionContext::copyOut(std::string_view from, const std::string& to) {
  from = withoutLink(from);
  auto target = hostTarget(to, lastName(from));
  if (!target) return fail(target.error());
  auto host = RootDir::open(target->directory);
  if (!host) return fail(noSuchPath(target->directory, host.error().sys_errno));
  const auto real = sys::canonicalPath(host->descriptor());
  if (!real) return fail(real.error());
  const OwnPaths own(*real);
  const auto refuse = [&](const std::string& path, FileType type) {
    const bool redirects = type != FileType::directory && own.areBelow(path);
    return std::string(own.contain(path) || redirects ? "caisson's own configuration or state is there" : "");
  };
  // As a commit: what the host would execute by itself, and what would replace a file that the session does not show,
  // comes only by its own name. Judged with the directories above the target, since `cp ID:workflows .github` gives its
  // files a protected name.
  CopyGuard guard(*host, *real, metadata_);
  const auto hold_back = [&](const std::string& path, FileType type, const std::string& link) {
    return guard.whyHeld(path, type, link);
  };
  CopyReport report;
  auto copied = useWorkspace([&](const RootDir& root) -> Result<void> {
    if (auto listed = guard.list(root, std::string(from), target->name); !listed) return listed;
    auto done = copyTree({&root, std::string(from), metadata_.payload_id}, {&*host, target->name, 0},
                         {.links_stay_inside = true, .hold_back = hold_back, .refuse = refuse});
    if (!done) return fail(done.error());
    report = std::move(*done);
    return {};
  });
  if (!copied) return fail(copied.error());
  return report;
}

}  // namespace caisson::session
