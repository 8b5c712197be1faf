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
  /// After the end: looks up on the host the paths that did not work in the sandbox, except below automount points, and
  /// moves everything into the result.
  void report(RunResult& result);

 private:
  /// Records the one or two paths of a call.
  void noteFiles(const Attempt& attempt, const Listener& listener, const plan::ObservedCall& call);
  /// Records the path in one argument; none below /proc, /sys or /dev.
  void noteFile(const Attempt& attempt, const Listener& listener, plan::PathArgument where, FileOperation operation);
  /// Records the addresses and DNS queries of a connect or send call.
  void noteNetwork(const Attempt& attempt, const Listener& listener, std::string_view call);
  /// Records the IP address and port in a sockaddr, except loopback. A name server is only remembered: the query that
  /// follows names the host.
  void noteAddress(const Attempt& attempt, const Listener& listener, std::uint64_t address, std::uint64_t length);
  /// Records the host name of a DNS query, if the socket is one that noteAddress() remembered.
  void noteQuestion(const Attempt& attempt, const Listener& listener, std::uint64_t address, std::uint64_t length);
  /// Counts a request for the host; `port` is 0 if only its name was looked up.
  void addHost(const std::string& host, std::uint16_t port);
  /// What keeps this access from working; `present` if nothing was seen to. So a file to be created is `present` if its
  /// directory is, unless the mount is read-only.
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

/// `path`, relative to `directory` if it is not absolute, without `.`, `..` (links are not resolved) or doubled
/// slashes. Empty if the path is empty, is relative without a `directory`, or has a control character.
std::string plainPath(const std::string& directory, const std::string& path);

}  // namespace caisson::supervise
