// Finds and lists sessions, and binds names to them. store_create.cc, store_remove.cc and store_clean.cc have the rest.
#include "session/store/store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/version.h"
#include "session/store/session_info.h"
#include "session/store/store_files.h"
#include "session/store/unreadable.h"
#include "supervise/sandbox_id.h"

namespace caisson::session {
namespace {

using sys::RootDir;

}  // namespace

Error noSuchSession(std::string_view call, std::string_view id_or_name) {
  return plainError(Stage::usage, call, id_or_name, "there is no such session",
                    "`caisson session list` shows the sessions of this user");
}

bool isCurrent(const SessionPaths& paths, const std::string& id, const RootDir& directory) {
  struct stat held, shown;
  return ::fstat(directory.descriptor(), &held) == 0 &&
         ::fstatat(paths.sessions().descriptor(), id.c_str(), &shown, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_ino == shown.st_ino && held.st_dev == shown.st_dev;
}

std::string Store::newId() { return supervise::newSandboxId(); }

Result<std::string> Store::idOf(std::string_view call, std::string_view id_or_name) const {
  if (isId(id_or_name)) return std::string(id_or_name);
  if (auto checked = checkName(call, id_or_name); !checked) return fail(checked.error());
  auto id = paths_.sessions().readFile(std::string(kNames) + "/" + std::string(id_or_name), 64);
  if (id && isId(*id)) return *id;
  return idWithPrefix(call, id_or_name);
}

Result<std::string> Store::idWithPrefix(std::string_view call, std::string_view prefix) const {
  if (!isIdPrefix(prefix)) return fail(noSuchSession(call, prefix));
  auto entries = paths_.sessions().list("");
  if (!entries) return fail(entries.error());
  std::string found;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (!isId(entry.name) || !entry.name.starts_with(prefix)) continue;
    if (!found.empty()) {
      return fail(plainError(Stage::usage, call, prefix, "ambiguous session id: several sessions start with it",
                             "type more of the id; `caisson session list` prints the ids"));
    }
    found = entry.name;
  }
  if (found.empty()) return fail(noSuchSession(call, prefix));
  return found;
}

Result<Store::Found> Store::find(std::string_view call, std::string_view id_or_name) const {
  auto id = idOf(call, id_or_name);
  if (!id) return fail(id.error());
  auto directory = paths_.sessions().enter(*id);
  if (!directory)
    return fail(directory.error().sys_errno == ENOENT ? noSuchSession(call, id_or_name) : directory.error());
  auto metadata = cache_->read(*directory);
  if (!metadata) return fail(metadata.error());
  if (metadata->id != *id || (metadata->name != id_or_name && !metadata->id.starts_with(id_or_name)))
    return fail(noSuchSession(call, id_or_name));
  if (metadata->secondsLeft(Moment::now()) <= 0 && !isKept(*directory, *metadata)) {
    return fail(plainError(Stage::usage, call, id_or_name, "the session's time is over",
                           "make a new one; give it longer with --ttl, or renew it in time"));
  }
  return Found{std::move(*directory), std::move(*metadata)};
}

Result<std::vector<SessionInfo>> Store::list() const {
  auto entries = paths_.sessions().list("");
  if (!entries) return fail(entries.error());
  std::vector<SessionInfo> infos;
  bool unreadable = false;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (!isId(entry.name)) continue;
    auto directory = paths_.sessions().enter(entry.name);
    if (!directory) continue;  // destroyed meanwhile
    const auto metadata = cache_->read(*directory);
    if (metadata && metadata->pooled) continue;  // not in use yet
    infos.push_back(metadata ? infoOf(paths_, *directory, *metadata) : infoOf(entry.name, metadata.error()));
    unreadable = unreadable || !metadata;
  }
  const auto names = unreadable ? namesById(paths_, kNames) : std::map<std::string, std::string>{};
  for (SessionInfo& info : infos) {
    if (const auto name = names.find(info.id); name != names.end() && info.name.empty()) info.name = name->second;
  }
  std::stable_sort(infos.begin(), infos.end(),
                   [](const SessionInfo& a, const SessionInfo& b) { return a.created < b.created; });
  return infos;
}

Result<void> Store::claimName(const std::string& name, const std::string& id) {
  if (name.empty()) return {};
  auto all = paths_.lockAll();
  if (!all) return fail(all.error());
  return claimNameLocked(name, id, false);
}

Result<void> Store::claimNameLocked(const std::string& name, const std::string& id, bool durable) {
  if (name.empty()) return {};
  const auto holder = find("session create", name);
  if (!holder && isOtherVersion(holder.error())) return fail(holder.error());
  if (holder) {
    const bool expired = holder->metadata.secondsLeft(Moment::now()) <= 0;
    return fail(plainError(
        Stage::usage, "session create", name,
        expired ? "an expired session of this name holds uncommitted changes" : "a session of this name exists",
        expired ? "choose another name, or commit, export or destroy it first"
                : "choose another name, or destroy it first"));
  }
  if (auto made = paths_.sessions().makeDirs(kNames, 0700); !made) return made;
  const std::string file = std::string(kNames) + "/" + name;
  const RootDir& sessions = paths_.sessions();
  return durable ? sessions.writeFileAtomic(file, id, 0600) : sessions.replaceFile(file, id, 0600);
}

}  // namespace caisson::session
