#include "base/path_parts.h"
#include "base/path_text.h"
#include "base/sha256.h"
#include "host/index_flags.h"
#include "policy/rules/git_index.h"
#include "session/commit/commit_planner.h"

namespace caisson::session {

std::string CommitPlanner::whyIndexHeld(Candidate& candidate) {
  const std::string& path = candidate.change.path;
  if (!candidate.entry.present || candidate.entry.info.type != sys::FileType::regular || !held_.isGitIndex(path))
    return "";
  const auto opened = now_.open(path, candidate.entry);
  if (!opened) return "";  // readContent() reports it
  if (opened->info.size > policy::kMaxIndexBytes) return "a git index that is too large to be checked";
  const auto content = readBytes(opened->file.get(), opened->info.size);
  if (!content) return "a git index that cannot be read";
  candidate.judged_sha256 = hex(Sha256().add(*content).finish());
  const std::string directory = directoryOf(path);
  const auto now = host::unwatchedFiles([&](const std::string& name) -> std::optional<std::string> {
    if (name == "index") return *content;
    const std::string shared = join(directory, name);
    const auto entry = find(shared);
    const auto file = entry.present ? now_.open(shared, entry) : Result<sys::OpenedFile>(fail(Error()));
    const bool readable = file && file->info.size <= policy::kMaxIndexBytes;
    return readable ? readBytes(file->file.get(), file->info.size) : std::nullopt;
  });
  if (now.empty()) return "";
  const auto before = host::unwatchedFiles(real_.root(), directory);
  for (const std::string& file : now) {
    if (before.contains(file)) continue;
    return "git would not show changes of " + (file == "?" ? "some files" : displayedPath(file)) +
           ", by a flag in its index (git update-index)";
  }
  return "";
}

}  // namespace caisson::session
