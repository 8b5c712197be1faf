#include "session/store/workspace_root.h"

#include <cerrno>

#include "base/text.h"
#include "base/utf8.h"
#include "plan/workspace.h"

namespace caisson::session {

Result<void> checkStateHidden(const SessionPaths& paths, const plan::HostFacts& facts, bool workspace) {
  for (const std::string& home : {paths.home(), paths.stores().knownAs()}) {
    const auto refuse = [&](const std::string& shown) {
      return fail(plainError(Stage::policy, "session create", shown, "caisson's own state (" + home + ") lies inside",
                             "show less, or move it with CAISSON_HOME"));
    };
    // A path that cannot be used is refused later, with the reason.
    if (workspace && !facts.workspace.path.empty() && plan::below(home, facts.workspace.path)) {
      return refuse(facts.workspace.path);
    }
    for (const auto* list : {&facts.read_only, &facts.read_write}) {
      for (const plan::HostPath& path : *list) {
        if (path.path.empty()) continue;
        if (plan::below(home, path.path) || plan::below(path.path, home)) return refuse(path.path);
      }
    }
  }
  return {};
}

Result<void> setRealDirectory(const plan::HostFacts& facts, Metadata& metadata) {
  const plan::HostPath& found = facts.workspace;
  if (!found.why_not.empty()) {
    return fail(plainError(Stage::host, "open workspace", found.requested, found.why_not, found.remedy));
  }
  if (found.sys_errno != 0 || !found.directory) {
    return fail(sysError(Stage::host, "open workspace", found.requested,
                         found.sys_errno != 0 ? found.sys_errno : ENOTDIR,
                         "give an existing directory you can enter: --workspace DIR, or --workspace :none"));
  }
  if (!isUtf8(found.path)) {
    return fail(plainError(Stage::usage, "session create", printable(found.path),
                           "a session's workspace must have a path in UTF-8", "rename the directory"));
  }
  auto identity = sys::identityOf(found.opened->get());
  if (!identity) return fail(identity.error());
  metadata.workspace = found.path;
  metadata.workspace_identity = std::move(*identity);
  return {};
}

Result<sys::RootDir> openRealDirectory(const Metadata& metadata) {
  const std::string hint = "if this is intended: caisson session rebind " + metadata.id + " DIR";
  auto opened = sys::openKnown(metadata.workspace, metadata.workspace_identity, hint);
  if (!opened) return fail(opened.error());
  return sys::RootDir::adopt(std::move(*opened), {.known_as = metadata.workspace});
}

bool addMissingIdentity(Metadata& metadata) {
  if (metadata.workspace.empty() || !metadata.workspace_identity.empty()) return false;
  const auto opened = sys::openWithoutLinks(metadata.workspace);
  if (!opened) return false;
  auto identity = sys::identityOf(opened->get());
  if (!identity) return false;
  metadata.workspace_identity = std::move(*identity);
  return true;
}

}  // namespace caisson::session
