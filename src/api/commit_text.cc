#include "api/commit_text.h"

#include "base/path_text.h"
#include "base/safe_text.h"

namespace caisson {

std::string commitTotals(const CommitReport& report) {
  std::size_t added = 0, modified = 0, deleted = 0;
  for (const ManifestEntry& entry : report.applied) {
    ++(entry.kind == ChangeKind::added ? added : entry.kind == ChangeKind::modified ? modified : deleted);
  }
  return std::to_string(report.applied.size()) + " changes (" + std::to_string(added) + " added, " +
         std::to_string(modified) + " modified, " + std::to_string(deleted) + " deleted, " +
         std::to_string(report.bytes) + " bytes)";
}

std::string commitLine(const ManifestEntry& entry) {
  std::string line = std::string(name(entry.kind)) + " " + displayedPath(entry.path);
  if (entry.kind == ChangeKind::deleted) return entry.type == "directory" ? line + "/ with everything below" : line;
  const std::string mode = modeChange(entry);
  if (entry.type == "directory") return line + "/" + (mode.empty() ? "" : " (" + mode + ")");
  if (entry.replaces_directory) line += ", in place of a directory with everything below";
  if (!entry.target.empty()) return line + " -> " + displayedPath(entry.target);
  line += " (" + std::to_string(entry.size) + " bytes";
  if ((entry.mode & 0111U) != 0) line += ", executable";
  if (!mode.empty()) line += ", " + mode;
  return line + ", sha256 " + entry.sha256.substr(0, 12) + ")";
}

std::vector<const ManifestEntry*> cautionEntries(const CommitReport& report) {
  std::vector<const ManifestEntry*> found;
  for (const ManifestEntry& entry : report.applied)
    if (entry.held_unless_named) found.push_back(&entry);
  return found;
}

std::string commitCaution(const CommitReport& report, std::size_t most) {
  const std::vector<const ManifestEntry*> found = cautionEntries(report);
  if (found.empty()) return {};
  std::string text = "CAREFUL: your computer may execute these later, or they are of an unusual kind: ";
  for (std::size_t at = 0; at < found.size() && at < most; ++at) {
    text += (at == 0 ? "" : ", ") + displayedPath(found[at]->path);
    if (!found[at]->held_reason.empty()) text += " (" + safeLine(found[at]->held_reason) + ")";
  }
  if (found.size() > most) text += (most > 0 ? " and " : "") + std::to_string(found.size() - most) + " more";
  return text;
}

}  // namespace caisson
