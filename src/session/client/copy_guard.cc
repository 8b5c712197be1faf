#include "session/client/copy_guard.h"

#include <utility>
#include <vector>

#include "base/path_parts.h"
#include "session/client/as_payload.h"

namespace caisson::session {
namespace {

using sys::FileType;

constexpr std::size_t kMaxCopied = 5'000'000;  // as a copy

/// The metadata of a session whose workspace is this directory.
Metadata metadataAt(Metadata metadata, const std::string& directory) {
  metadata.workspace = directory;
  return metadata;
}

}  // namespace

CopyGuard::CopyGuard(const sys::RootDir& host, const std::string& real, const Metadata& metadata)
    : there_(metadataAt(metadata, real)),
      tree_(host),
      held_(tree_, there_.policy.filesystem.workspace, real),
      hidden_(host, there_) {}

Result<void> CopyGuard::list(const sys::RootDir& session, const std::string& from, const std::string& to) {
  const auto top = [&] {
    const AsPayload identity(there_.payload_id);
    return session.stat(from);
  }();
  if (!top || top->type != FileType::directory) return {};  // it is named
  std::vector<std::pair<std::string, std::string>> pending{{from, to}};
  while (!pending.empty()) {
    const auto [directory, copy] = std::move(pending.back());
    pending.pop_back();
    if (auto listed = listDirectory(session, directory, copy, pending); !listed) return listed;
  }
  std::vector<policy::WorkspaceLink> links;
  for (const auto& [path, entry] : listed_) {
    held_.addPresent(path);
    if (entry.type == FileType::link) links.push_back({.path = path, .target = entry.target});
  }
  held_.findLinks(links);
  return {};
}

Result<void> CopyGuard::listDirectory(const sys::RootDir& session, const std::string& from, const std::string& to,
                                      std::vector<std::pair<std::string, std::string>>& pending) {
  const AsPayload identity(there_.payload_id);
  const auto entries = session.list(from);
  if (!entries) return {};  // the copy says why
  for (const sys::DirectoryEntry& entry : *entries) {
    if (listed_.size() == kMaxCopied) {
      return fail(
          plainError(Stage::state, "session cp", from, "it has more than five million entries", "copy a part of it"));
    }
    const std::string source = join(from, entry.name), copy = join(to, entry.name);
    const auto info = session.stat(source);
    if (!info) continue;
    Listed listed{.type = info->type, .target = {}};
    if (info->type == FileType::link) {
      auto target = session.readLink(source);
      if (!target) continue;
      listed.target = *std::move(target);
    }
    listed_[copy] = std::move(listed);
    if (info->type == FileType::directory) pending.emplace_back(source, copy);
  }
  return {};
}

std::string CopyGuard::whyHeld(const std::string& path, FileType type, const std::string& target) {
  const auto listed = listed_.find(path);
  if (listed == listed_.end() || listed->second.type != type || listed->second.target != target) {
    return "it changed during the copy";
  }
  if (type == FileType::directory) return "";  // what is in it is judged by its whole path
  // The session makes links, too: as many as it likes.
  if (!held_.searchedAll())
    return "there are too many links and git configurations to tell whether the host executes it";
  if (std::string why = held_.why(path, false); !why.empty()) return why;
  if (type == FileType::link) {
    if (std::string why = held_.whyLink(path, target); !why.empty()) return why;
  }
  const auto there = tree_.look(path);
  if (there && *there && hidden_.hides(path, (*there)->type == FileType::directory)) {
    return "the host's file of that name is not shown to the session";
  }
  return "";
}

}  // namespace caisson::session
