#include "host/other_names.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

namespace caisson::host {

void OtherNames::hide(const sys::RootDir& root, const ListedTree& tree, std::vector<std::string>& hidden) {
  std::map<std::uint64_t, std::uint32_t> missing;  // how many names of a file are not hidden
  for (const std::string& path : std::set<std::string>(hidden.begin(), hidden.end())) {
    struct statx status{};
    constexpr unsigned kWanted = STATX_TYPE | STATX_NLINK | STATX_INO;
    constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (::statx(root.descriptor(), path.c_str(), kFlags, kWanted, &status) != 0) continue;
    if (!S_ISREG(status.stx_mode) || status.stx_nlink < 2) continue;
    missing.try_emplace(status.stx_ino, status.stx_nlink).first->second -= 1;
  }
  std::erase_if(missing, [](const auto& one) { return one.second == 0; });
  const auto is_tracked = [&](const auto& one) { return tree.tracks(one.first); };
  if (!std::ranges::all_of(missing, is_tracked)) {
    for (const auto& one : missing) untracked_.push_back(one.first);
  }
  for (auto& [inode, path] : names_) {
    if (missing.contains(inode)) hidden.push_back(std::move(path));
  }
}

}  // namespace caisson::host
