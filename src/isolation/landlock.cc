// Landlock: applies the plan's rights to the mounted tree.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "isolation/child.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {

void restrictWithLandlock(const Block& block, int* kept) {
  if (kept != nullptr) *kept = -1;
  if (block.landlock_abi < 1) return;
  sys::LandlockRulesetAttr attributes{block.handled_fs, block.handled_net, block.scoped};
  const std::size_t size = block.landlock_abi >= 6 ? sizeof(attributes) : block.landlock_abi >= 4 ? 16 : 8;
  const long ruleset = must(block, Stage::landlock, "landlock_create_ruleset", "",
                            raw(SYS_landlock_create_ruleset, &attributes, size, 0));
  for (std::uint32_t i = 0; i < block.rule_count; ++i) {
    const FlatRule& rule = block.rules[i];
    const long fd = raw(SYS_openat, AT_FDCWD, rule.path, O_PATH | O_CLOEXEC, 0);
    if (rule.optional && (fd == -ENOENT || fd == -EACCES || fd == -ENOTDIR)) continue;
    must(block, Stage::landlock, "open", rule.path, fd);
    requireSame(block, Stage::landlock, rule.path, static_cast<int>(fd), rule.expected);
    struct stat status;
    must(block, Stage::landlock, "fstat", rule.path, raw(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH));
    std::uint64_t access = rule.access;
    if (!S_ISDIR(status.st_mode)) {  // the kernel rejects directory rights on a file
      access &= sys::kFsExecute | sys::kFsWriteFile | sys::kFsReadFile | sys::kFsTruncate | sys::kFsIoctlDev;
    }
    if (access != 0) {
      sys::LandlockPathBeneathAttr beneath{access, static_cast<int>(fd)};
      must(block, Stage::landlock, "landlock_add_rule", rule.path,
           raw(SYS_landlock_add_rule, ruleset, sys::kLandlockRulePathBeneath, &beneath, 0));
    }
    closeFd(static_cast<int>(fd));
  }
  // Also allow the caller's files that are standard streams, so that the payload can open /dev/stdout. Errors are
  // ignored: the stream itself works without this.
  for (int stream = 0; stream < 3; ++stream) {
    if (block.stream_rights[stream] == 0) continue;
    sys::LandlockPathBeneathAttr file{block.stream_rights[stream], stream};
    raw(SYS_landlock_add_rule, ruleset, sys::kLandlockRulePathBeneath, &file, 0);
  }
  for (std::uint32_t i = 0; i < block.passed_count; ++i) {
    if (block.passed[i].reopen_rights == 0) continue;
    sys::LandlockPathBeneathAttr file{block.passed[i].reopen_rights, block.passed[i].number};
    raw(SYS_landlock_add_rule, ruleset, sys::kLandlockRulePathBeneath, &file, 0);
  }
  must(block, Stage::landlock, "landlock_restrict_self", "", raw(SYS_landlock_restrict_self, ruleset, 0));
  if (kept == nullptr) return closeFd(static_cast<int>(ruleset));
  *kept = static_cast<int>(ruleset);
}

}  // namespace caisson::isolation
