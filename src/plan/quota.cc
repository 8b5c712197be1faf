#include "plan/quota.h"

#include <sys/resource.h>

#include <algorithm>

#include "plan/workspace.h"

namespace caisson::plan {
namespace {

using policy::WorkspaceMode;

std::string sizeText(std::uint64_t bytes) {
  if (bytes % policy::kGiB == 0) return std::to_string(bytes / policy::kGiB) + " GiB";
  if (bytes % policy::kMiB == 0) return std::to_string(bytes / policy::kMiB) + " MiB";
  return std::to_string(bytes) + " bytes";
}

void append(std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; }

/// The directories in memory with their sizes, as text. The kernel enforces these: it returns ENOSPC.
std::string hardParts(const Plan& plan) {
  std::string parts;
  for (const Step& step : plan.steps) {
    if (const auto* overlay = std::get_if<MountOverlay>(&step);
        overlay != nullptr && !overlay->on_disk && !overlay->read_only)
      append(parts, overlay->target + " " + sizeText(overlay->bytes));
    const auto* tmpfs = std::get_if<MountTmpfs>(&step);
    if (tmpfs != nullptr && !tmpfs->optional && !tmpfs->on_disk && tmpfs->target != "/")
      append(parts, tmpfs->target + " " + sizeText(tmpfs->bytes));
  }
  return parts;
}

/// Host directories that the payload writes directly.
std::vector<std::string> directTrees(const policy::Policy& policy, const HostFacts& host, const Plan& plan) {
  std::vector<std::string> trees;
  if (policy.filesystem.workspace.mode == WorkspaceMode::rw && plan.workspace_shown)
    trees.push_back(host.workspace.path);
  for (const HostPath& path : host.read_write) trees.push_back(path.path);
  return trees;
}

/// The limit on the size of one file: no file needs to be larger than the largest directory that can hold it, or than
/// all memory for an unnamed one. Larger sparse files take no space here, but fill a disk to which they are copied.
std::uint64_t largestFile(const policy::Policy& policy, const HostFacts& host, const Plan& plan, bool direct) {
  constexpr std::uint64_t kDirectBytes = 64 * policy::kGiB;  // of a workspace without a limit
  std::uint64_t most = std::max(policy.resources.memory, policy.resources.memory == 0 ? host.memory : 0);
  for (const Step& step : plan.steps) {
    if (const auto* tmpfs = std::get_if<MountTmpfs>(&step)) most = std::max(most, tmpfs->bytes);
    if (const auto* overlay = std::get_if<MountOverlay>(&step)) most = std::max(most, overlay->bytes);
  }
  if (direct) most = std::max(most, policy.filesystem.max_total_size.value_or(kDirectBytes));
  return most;
}

}  // namespace

bool limitsIo(const policy::Resources& r) {
  return r.io_read_bytes_per_second || r.io_write_bytes_per_second || r.io_read_operations_per_second ||
         r.io_write_operations_per_second;
}

Result<void> planQuota(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const policy::Filesystem& wanted = policy.filesystem;
  DiskQuota quota;
  quota.bytes = wanted.max_total_size;
  quota.inodes = wanted.max_inodes;
  std::string watched;
  for (const Step& step : plan.steps) {
    const auto* overlay = std::get_if<MountOverlay>(&step);
    if (overlay == nullptr || !overlay->on_disk) continue;
    quota.upper = true;
    quota.bytes = overlay->bytes;
    quota.inodes = overlay->inodes;
    append(watched, overlay->target);
  }
  for (const Step& step : plan.steps) {
    const auto* directory = std::get_if<MountTmpfs>(&step);
    if (directory == nullptr || !directory->on_disk) continue;
    quota.directories.push_back({.target = directory->target,
                                 .bytes = directory->bytes,
                                 .inodes = directory->inodes,
                                 .cache = !directory->cache.empty()});
  }
  quota.total_has_directories = wanted.max_total_size.has_value();
  quota.trees = directTrees(policy, host, plan);
  if (!quota.inodes && !quota.trees.empty()) quota.inodes = kWorkspaceInodes;
  if (!wanted.max_file_size && plan.level != policy::Level::none) {
    const std::uint64_t most = largestFile(policy, host, plan, !quota.trees.empty());
    if (most > 0) plan.rlimits.push_back({"fsize", RLIMIT_FSIZE, most});
  }
  for (const std::string& tree : quota.trees) append(watched, tree);
  if (!watched.empty()) watched += " " + (quota.bytes ? sizeText(*quota.bytes) : "without a separate limit");
  for (const DirectoryQuota& one : quota.directories) append(watched, one.target + " " + sizeText(one.bytes));
  if (quota.bytes && quota.total_has_directories && !quota.directories.empty()) {
    watched += ", together " + sizeText(*quota.bytes);
  }
  const std::string hard = hardParts(plan);
  if (!watched.empty() && wanted.quota_class == policy::QuotaClass::hard) {
    return fail(plainError(
        Stage::host, "plan", "filesystem.quota_class",
        "what the program writes to " + watched + " can only be watched on this host, not held",
        "use --workspace DIR:overlay on Linux 6.6 or newer, no --rw and store memory, or allow class `any`"));
  }
  std::string text = hard.empty() ? "" : "hard (ENOSPC): " + hard;
  if (!watched.empty()) {
    text += (text.empty() ? "" : "; ") + std::string("watched: ") + watched;
    text += ", the host keeps some room; what is written within 20 to 100 ms may go beyond";
    plan.disk = quota;
    if (quota.bytes) {  // so that no single file exceeds the limit between two polls
      std::uint64_t most = *quota.bytes;
      for (const DirectoryQuota& one : quota.directories) {
        if (!quota.total_has_directories) most = std::max(most, one.bytes);
      }
      most = std::min(most, wanted.max_file_size.value_or(most));
      std::erase_if(plan.rlimits, [](const ResourceLimit& limit) { return limit.name == "fsize"; });
      plan.rlimits.push_back({"fsize", RLIMIT_FSIZE, most});
    }
  }
  if (!text.empty()) plan.layers["disk_quota"] = text;
  return {};
}

}  // namespace caisson::plan
