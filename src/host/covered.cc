#include "host/covered.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "isolation/child.h"
#include "sys/fd.h"
#include "sys/file_identity.h"

namespace caisson::host {
namespace {

std::optional<sys::FileIdentity> identityBelow(int root, const std::string& path) {
  const sys::Fd opened(static_cast<int>(isolation::openBeneath(root, path.c_str(), O_PATH | O_CLOEXEC)));
  if (!opened) return std::nullopt;
  auto identity = sys::identityOf(opened.get());
  return identity ? std::optional(*std::move(identity)) : std::nullopt;
}

}  // namespace

bool isKernelFilesystem(int directory) {
  struct statfs info{};
  if (::fstatfs(directory, &info) != 0) return true;
  constexpr unsigned long kKernel[] = {PROC_SUPER_MAGIC,   SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
                                       DEBUGFS_MAGIC,      TRACEFS_MAGIC,  SECURITYFS_MAGIC,   BPF_FS_MAGIC,
                                       DEVPTS_SUPER_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC,     BINFMTFS_MAGIC,
                                       SELINUX_MAGIC,      SMACK_MAGIC};
  return std::ranges::find(kKernel, static_cast<unsigned long>(info.f_type)) != std::end(kKernel);
}

void joinCovered(std::vector<plan::WorkspaceScan::Covered>& covered) {
  std::ranges::sort(covered, {}, &plan::WorkspaceScan::Covered::path);
  const auto repeated = std::ranges::unique(covered, {}, &plan::WorkspaceScan::Covered::path);
  covered.erase(repeated.begin(), repeated.end());
  const auto cut = [](const std::string& path, std::size_t depth) {
    std::size_t end = 0;
    for (; depth > 0; --depth) {
      end = path.find('/', end == 0 ? 0 : end + 1);
      if (end == std::string::npos) return path;
    }
    return path.substr(0, end);
  };
  std::size_t depth = 0;
  for (const auto& one : covered) {
    depth = std::max(depth, static_cast<std::size_t>(std::ranges::count(one.path, '/')));
  }
  while (covered.size() > kMaxCovered) {
    std::map<std::string, std::string> above;
    for (const auto& one : covered) above.emplace(depth == 0 ? "." : cut(one.path, depth), one.reason);
    covered.clear();
    for (const auto& [path, reason] : above) covered.push_back({path, reason});
    if (depth-- == 0) break;
  }
}

void identifyCovered(int root, std::vector<plan::WorkspaceScan::Covered>& covered) {
  for (auto& one : covered) {
    if (const auto identity = identityBelow(root, one.path)) one.identity = identity->text();
  }
}

bool isStillCovered(int root, const std::string& path, const std::string& identity) {
  const auto then = sys::FileIdentity::read(identity);
  const auto now = identityBelow(root, path);
  return then && now && sys::isSameFile(*then, *now);
}

}  // namespace caisson::host
