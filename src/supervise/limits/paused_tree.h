// Stops the processes of a sandbox for the life of an object, so that they cannot use the time of a long measurement.
#pragma once

#include <vector>

#include "supervise/processes/command_tree.h"
#include "supervise/processes/process_tree.h"

namespace caisson::supervise {

/// Processes that were stopped before stay stopped afterwards. Looks four times for new ones, so a process that forks
/// all the time may not be stopped. If the supervisor dies meanwhile, pid 1 exits and the kernel kills them.
class PausedTree {
 public:
  explicit PausedTree(const ProcessTree& processes);
  ~PausedTree();
  PausedTree(const PausedTree&) = delete;
  PausedTree& operator=(const PausedTree&) = delete;

 private:
  std::vector<CommandTree::Member> stopped_;
};

}  // namespace caisson::supervise
