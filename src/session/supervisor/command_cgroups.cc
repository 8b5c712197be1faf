#include "session/supervisor/command_cgroups.h"

#include <algorithm>
#include <string>

namespace caisson::session {
namespace {

/// Per session, since each uses some descriptors of the supervisor. Commands beyond this run in the session's cgroup.
constexpr std::size_t kMaxCommandCgroups = 64;

void subtract(std::optional<std::uint64_t>& value, const std::optional<std::uint64_t>& before) {
  if (value && before) *value -= std::min(*value, *before);
}

}  // namespace

std::vector<int> CommandCgroup::descriptors() const {
  if (cgroup_.descriptor() >= 0) return {cgroup_.descriptor()};
  const auto entries = cgroup_.entries();
  return {entries.begin(), entries.end()};
}

CgroupEntry CommandCgroup::entry() const {
  return cgroup_.descriptor() >= 0 ? CgroupEntry::directory : CgroupEntry::tasks;
}

sys::CgroupUsage CommandCgroup::usage() {
  latest_ = cgroup_.totals(true);
  sys::CgroupUsage usage = latest_;
  subtract(usage.oom_kills, before_.oom_kills);
  subtract(usage.pids_limit_hits, before_.pids_limit_hits);
  subtract(usage.cpu_usec, before_.cpu_usec);
  subtract(usage.cpu_user_usec, before_.cpu_user_usec);
  subtract(usage.cpu_system_usec, before_.cpu_system_usec);
  return usage;
}

CommandCgroups::CommandCgroups(const sys::Cgroup& session, std::optional<uid_t> uid) : session_(session), uid_(uid) {
  // pid 1 moves a command out of the session's cgroup, so it needs write access there; the files are not visible to it.
  if (session.descriptor() >= 0 && uid && !session.allowEntry(*uid)) unsupported_ = true;
}

std::optional<CommandCgroup> CommandCgroups::make() {
  if (!session_.valid() || unsupported_ || count_ >= kMaxCommandCgroups) return std::nullopt;
  auto made = session_.createChild("command-" + std::to_string(++last_));
  if (!made || (made->descriptor() >= 0 && uid_ && !made->allowEntry(*uid_))) {
    unsupported_ = true;
    return std::nullopt;
  }
  CommandCgroup cgroup(std::move(*made));
  if (cgroup.descriptors().empty() || cgroup.descriptors().size() > kMaxCgroups) return std::nullopt;
  ++count_;
  return cgroup;
}

std::optional<CommandCgroup> CommandCgroups::take() {
  if (ready_.empty()) reclaim();
  if (ready_.empty()) return make();
  CommandCgroup one = std::move(ready_.back());
  ready_.pop_back();
  return one;
}

void CommandCgroups::giveBack(CommandCgroup cgroup, bool alone) {
  if (!alone) return static_cast<void>(occupied_.push_back(std::move(cgroup)));
  if (cgroup.killed_ && cgroup.entry() == CgroupEntry::directory) {
    --count_;  // removed with the object
    return;
  }
  cgroup.cgroup_.reset();
  cgroup.before_ = cgroup.latest_;
  ready_.push_back(std::move(cgroup));
}

void CommandCgroups::reclaim() {
  for (auto one = occupied_.begin(); one != occupied_.end();) {
    if (!one->cgroup_.empty()) {
      ++one;
      continue;
    }
    (void)one->usage();  // its last processes have used more since
    giveBack(std::move(*one), true);
    one = occupied_.erase(one);
  }
}

bool CommandCgroups::leftBehindRanOutOfMemory() {
  bool any = false;
  for (CommandCgroup& one : occupied_) {
    if (!one.ranOutOfMemory()) continue;
    one.before_ = one.latest_;
    any = true;
  }
  return any;
}

void CommandCgroups::refill() {
  if (!ready_.empty()) return;
  reclaim();
  if (!ready_.empty()) return;
  if (auto made = make()) ready_.push_back(std::move(*made));
}

}  // namespace caisson::session
