// The supervisor's handle of an egress process: starts it, receives reports, changes its rules, ends it.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "sys/fd.h"
#include "sys/helper_process.h"

namespace caisson::egress {

/// The caisson program, which is started again as the egress process: `requested`, or the installed one if empty.
std::string programPath(const std::string& requested);

/// The two ends over which pid 1 of a sandbox passes its sockets to its egress process.
struct Link {
  sys::Fd sandbox, egress;  ///< the end for pid 1, and the end for the egress process
};
/// Creates the pair; both descriptors are above 2.
Result<Link> makeLink();

/// The addresses of the host's DNS servers, from its resolver configuration.
std::vector<std::string> hostDnsServers();

class Process {
 public:
  /// Starts `program` with an empty environment and only its own descriptors. Fast: it sets itself up in parallel with
  /// the sandbox, and a failure to do so arrives as a report. `broker`: its end of the link to the broker, or invalid.
  static Result<Process> start(const std::string& program, const Settings& settings, sys::Fd link, sys::Fd broker);

  /// For a session: other processes of the user send changes and answers through `listener`, a listening socket. It
  /// exits with pid 1 of the sandbox, `init` (a pidfd), or with this object. Returns once it is ready, or an error
  /// after at most ten seconds.
  static Result<Process> startForSession(const std::string& program, Settings settings, sys::Fd link, sys::Fd broker,
                                         int init, int listener);

  /// After startForSession(): which ports are captured, for the plan's layers ("every port", "permitted ports").
  [[nodiscard]] const std::string& capture() const { return capture_; }
  /// Readable if receive() has something.
  [[nodiscard]] int descriptor() const { return control_.get(); }
  /// Passes on every report that has arrived, without waiting; false once the process is gone. Connections reported as
  /// opened carry no data before confirmRecorded().
  bool receive(const std::function<void(const Report&)>& take);
  /// Sends a change and does not wait for its effect: connections that are no longer allowed are closed. An error if
  /// the pattern is malformed or the process is gone.
  Result<void> change(const Change& change);
  /// Tells the process that everything receive() delivered is recorded, so that opened connections may carry data. If
  /// its socket is full, the next call covers this one.
  void confirmRecorded();
  /// Requests its totals, which it sends after all earlier reports. The request is lost if its socket is full.
  void requestTotals();
  /// Call after the sandbox is gone: receives the last reports, then ends the process. Waits at most a second for each
  /// report and 30 seconds in total.
  void finish(const std::function<void(const Report&)>& take);

 private:
  Process() = default;
  /// Starts the process and sends it its settings. `init` and `listener`: -1 without a session.
  static Result<Process> spawn(const std::string& program, const Settings& settings, sys::Fd link, sys::Fd broker,
                               int init, int listener);

  std::string capture_;  ///< startForSession(): what is captured, as reported by the process
  sys::HelperProcess helper_;
  sys::Fd control_;
  std::uint64_t opened_ = 0, confirmed_ = 0;  ///< number of connections reported as opened, and confirmed as recorded
};

}  // namespace caisson::egress
