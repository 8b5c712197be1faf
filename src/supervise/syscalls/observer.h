// Records the files and hosts that a program tries to access (`--learn`, `--trace files`).
//
// The supervisor is notified of calls that continue in any case (plan/observation.h). Paths are read from the program's
// memory, which it can change at any time: they are advice, and no protection depends on them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "caisson/run.h"
#include "plan/observation.h"
#include "plan/plan.h"
#include "supervise/syscalls/listener.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Memory is bounded.
class Observer {
 public:
  explicit Observer(const plan::Plan& plan);

  /// Records the path or host of a reported call, while its thread waits.
  void note(const Attempt& attempt, const Listener& listener);
  /// After the end: probes those paths on the host, and moves everything into the result.
  void report(RunResult& result);

 private:
  void noteFiles(const Attempt& attempt, const Listener& listener, const plan::ObservedCall& call);
  void noteFile(const Attempt& attempt, const Listener& listener, plan::PathArgument where, FileOperation operation);
  void noteNetwork(const Attempt& attempt, const Listener& listener, std::string_view call);
  void noteAddress(const Attempt& attempt, const Listener& listener, std::uint64_t address, std::uint64_t length);
  void noteQuestion(const Attempt& attempt, const Listener& listener, std::uint64_t address, std::uint64_t length);
  void addHost(const std::string& host, std::uint16_t port);
  [[nodiscard]] FileState stateOf(const std::string& path, FileOperation operation) const;

  const plan::Plan& plan_;
  std::map<int, const plan::ObservedCall*> files_calls_;
  std::map<int, std::string_view> network_calls_;
  sys::Fd root_;  ///< of the sandbox
  std::map<std::pair<std::string, FileOperation>, FileRequest> files_;
  std::map<std::string, HostRequest> hosts_;
  std::set<std::pair<pid_t, int>> resolvers_;  ///< sockets connected to a name server
  std::uint64_t dropped_ = 0;
};

/// An absolute path without `.`, `..`, or doubled slashes; empty if it is not absolute or has a control character.
std::string plainPath(const std::string& directory, const std::string& path);

}  // namespace caisson::supervise
