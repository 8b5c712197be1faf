#include "supervise/processes/command_tree.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "supervise/processes/proc_text.h"
#include "supervise/processes/process_tree.h"
#include "supervise/processes/socket_owner.h"
#include "sys/fd.h"
#include "sys/process_start.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

constexpr int kMaxRounds = 16;

}  // namespace

void signalExactly(const CommandTree::Member& member, int signal) {
  const long opened = sys::raw(SYS_pidfd_open, member.pid, 0);
  if (opened < 0) return;
  const sys::Fd pidfd(static_cast<int>(opened));
  if (sys::processStart(member.pid) != member.start) return;
  sys::raw(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

struct CommandTree::Process {
  Relations relations;
  Member member;
};

std::map<pid_t, CommandTree::Process> CommandTree::look(pid_t& root) const {
  std::map<pid_t, Process> processes;
  root = 0;
  for (const pid_t pid : ProcessTree(init_).members()) {
    if (pid == init_) continue;
    const std::string stat = readFile(pid, "stat");
    const auto times = parseProcessTimes(stat);
    if (!times) continue;  // exited meanwhile
    processes[pid] = {relationsIn(stat), {pid, sys::processStartIn(stat), times->ticks}};
    if (root == 0 && innermostNumberIn(readFile(pid, "status")) == root_) root = pid;
  }
  return processes;
}

std::vector<CommandTree::Member> CommandTree::membersAndDaemons() const {
  pid_t root = 0;
  const std::map<pid_t, Process> processes = look(root);
  std::vector<Member> found;
  if (root == 0) return found;
  const std::uint64_t began = processes.at(root).member.start;
  for (const auto& [pid, process] : processes) {
    // Starts are counted in hundredths of a second; within one, pids grow, unless they wrap.
    const std::uint64_t start = process.member.start;
    if (start < began || (start == began && pid < root)) return members();
    found.push_back(process.member);
  }
  return found;
}

std::vector<CommandTree::Member> CommandTree::members() const {
  pid_t root = 0;
  const std::map<pid_t, Process> processes = look(root);
  std::vector<Member> found;
  if (root == 0) return found;
  std::set<pid_t> ours;
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [pid, seen] : processes) {
      const Relations& to = seen.relations;
      if (ours.contains(pid)) continue;
      if (pid != root && to.session != root && to.group != root && !ours.contains(to.parent)) continue;
      ours.insert(pid);
      found.push_back(seen.member);
      changed = true;
    }
  }
  return found;
}

void CommandTree::signal(int signal) const {
  for (const Member& member : members()) signalExactly(member, signal);
}

void CommandTree::kill(bool alone) const {
  std::size_t before = 0;
  std::vector<Member> found;
  for (int round = 0; round < kMaxRounds; ++round) {
    found = alone ? membersAndDaemons() : members();
    for (const Member& member : found) signalExactly(member, SIGSTOP);
    if (round > 0 && found.size() == before) break;
    before = found.size();
  }
  for (const Member& member : found) signalExactly(member, SIGKILL);
}

void CommandTree::countCpu() {
  for (const Member& member : members()) {
    if (innermostNumberIn(readFile(member.pid, "status")) != root_) continue;
    if (auto clock = sys::CpuClock::open(member.pid)) clock_ = std::move(*clock);
  }
}

std::uint64_t CommandTree::cpuMicroseconds() {
  static const std::uint64_t per_tick = 1'000'000ULL / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  std::uint64_t ticks = 0;
  for (const Member& member : members()) ticks += member.ticks;
  const std::uint64_t now = ticks * per_tick;
  if (now + lost_ < seen_) lost_ = seen_ - now;
  seen_ = now + lost_;
  const std::uint64_t counted = clock_ ? static_cast<std::uint64_t>(clock_->used().count()) : 0;
  return std::max(seen_, counted);
}

}  // namespace caisson::supervise
