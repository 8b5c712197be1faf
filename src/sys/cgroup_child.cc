// Child cgroups of a sandbox's cgroup, one per command of a session.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/cgroup.h"
#include "sys/cgroup_files.h"

namespace caisson::sys {
namespace {

using Kind = CgroupBase::Kind;

constexpr int kMaxRounds = 16;

}  // namespace

Result<Cgroup> Cgroup::createChild(std::string_view name) const {
  if (!valid() || !isCgroupId(name)) return fail(plainError(Stage::limits, "cgroup", name, "not a name"));
  Cgroup child;
  child.kind_ = kind_;
  child.name_ = name;
  for (const Part& above : directories_) {
    // v1: each hierarchy costs one entry per command. A hierarchy without memory or CPU accounting is used only if it
    // is the only one of this cgroup.
    const bool counts = above.has.memory || above.accounts_cpu;
    if (kind_ == Kind::v1 && !counts && directories_.size() > 1) continue;
    Part part{.parent = Fd(::fcntl(above.fd.get(), F_DUPFD_CLOEXEC, 3)),
              .path = above.path + "/" + child.name_,
              .has = kind_ == Kind::v1 ? above.has : CgroupControllers{},
              .accounts_cpu = above.accounts_cpu};
    if (!part.parent) return fail(sysError(Stage::limits, "dup", above.path, errno));
    if (::mkdirat(part.parent.get(), child.name_.c_str(), 0755) != 0) {
      return fail(sysError(Stage::limits, "mkdir", part.path, errno));
    }
    part.fd = openDirectoryAt(part.parent.get(), child.name_.c_str());
    const int error = errno;
    child.directories_.push_back(std::move(part));  // before the check, so that a failure removes it
    if (!child.directories_.back().fd) {
      return fail(sysError(Stage::limits, "open", child.directories_.back().path, error));
    }
  }
  if (kind_ == Kind::v1) {
    if (auto opened = child.openEntries(); !opened) return fail(opened.error());
  }
  return child;
}

Result<void> Cgroup::allowEntry(uid_t uid) const {
  for (const Part& part : directories_) {
    if (::fchownat(part.fd.get(), "cgroup.procs", uid, static_cast<gid_t>(-1), AT_SYMLINK_NOFOLLOW) != 0) {
      return fail(sysError(Stage::limits, "chown", part.path + "/cgroup.procs", errno));
    }
  }
  return {};
}

void Cgroup::killNow() const {
  if (!valid()) return;
  if (kind_ == Kind::v2 && writeAt(directories_.front().fd.get(), "cgroup.kill", "1") == 0) return;  // Linux 5.14
  for (int round = 0; round < kMaxRounds && killMembers(directories_.front().fd.get()) > 0; ++round) {
  }
}

bool Cgroup::empty() const {
  if (kind_ == Kind::v2) {
    const auto events = valid() ? readAt(directories_.front().fd.get(), "cgroup.events") : std::nullopt;
    return events && parseKeyed(*events, "populated") == 0U;
  }
  // Processes enter the first directory first, so if that is empty, all are.
  const auto members = valid() ? membersOf(directories_.front().fd.get()) : std::nullopt;
  return members && members->empty();
}

void Cgroup::reset() const {
  const Part* memory = kind_ == Kind::v1 ? part(&CgroupControllers::memory) : nullptr;
  if (memory != nullptr) (void)writeAt(memory->fd.get(), "memory.max_usage_in_bytes", "0");
}

}  // namespace caisson::sys
