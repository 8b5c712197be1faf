#include "supervise/limits/paused_tree.h"

#include <signal.h>

#include <ranges>
#include <set>

#include "supervise/processes/proc_text.h"
#include "sys/process_start.h"

namespace caisson::supervise {
namespace {

constexpr int kPauseRounds = 4;  // processes that are forked meanwhile

/// The state letter follows the program's name, which may contain anything.
char stateIn(const std::string& stat) {
  const auto end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ? 'X' : stat[end + 2];
}

}  // namespace

PausedTree::PausedTree(const ProcessTree& processes) {
  std::set<pid_t> seen{processes.init()};
  for (int round = 0; round < kPauseRounds; ++round) {
    bool found = false;
    for (const pid_t pid : processes.members()) {
      if (!seen.insert(pid).second) continue;
      const std::string stat = readFile(pid, "stat");
      const char state = stateIn(stat);
      if (state == 'T' || state == 't' || state == 'Z' || state == 'X') continue;
      stopped_.push_back({pid, sys::processStartIn(stat), 0});
      signalExactly(stopped_.back(), SIGSTOP);
      found = true;
    }
    if (!found) break;
  }
}

PausedTree::~PausedTree() {
  // Children first: a shell that waits for its jobs then finds them running.
  for (const CommandTree::Member& member : std::ranges::reverse_view(stopped_)) signalExactly(member, SIGCONT);
}

}  // namespace caisson::supervise
