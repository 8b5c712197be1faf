// The supervisor's side of an egress process: start it, hear from it, change its rules, end it.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "sys/fd.h"
#include "sys/helper_process.h"

namespace caisson::egress {

/// The program that is started as the egress process. The command line names itself ("/proc/self/exe"); an application
/// that embeds the library names an installed caisson, or leaves the default.
void useProgram(std::string path);
/// Where that is: what was set, or where the program is installed.
const std::string& ownProgram();

/// The two ends over which pid 1 of a sandbox hands its sockets to its egress process.
struct Link {
  sys::Fd sandbox, egress;
};
Result<Link> makeLink();

/// The addresses of the host's own DNS servers, from its resolver configuration.
std::vector<std::string> hostDnsServers();

class Process {
 public:
  /// Starts it as a process of its own, with an empty environment and no descriptor but its own. Quick: it does its
  /// own set-up while the sandbox does. `broker`: its end of the link to the credential broker, or none.
  static Result<Process> start(const Settings& settings, sys::Fd link, sys::Fd broker);

  /// For a session: other processes of the user send changes and answer questions through `listener`, a listening
  /// socket; it ends with pid 1 of the sandbox, `init`. Returns when it is at work.
  static Result<Process> startForSession(Settings settings, sys::Fd link, sys::Fd broker, int init, int listener);

  [[nodiscard]] const std::string& capture() const { return capture_; }
  /// Readable when there is something to receive().
  [[nodiscard]] int descriptor() const { return control_.get(); }
  /// Every report that has arrived; false once the process is gone. Connections that were reported as opened wait for
  /// confirmRecorded().
  bool receive(const std::function<void(const Report&)>& take);
  /// For live sessions (N10): takes effect at once; connections that no longer fit are cut.
  Result<void> change(const Change& change);
  /// What receive() delivered so far is on record: opened connections may carry data.
  void confirmRecorded();
  /// Has it report its totals, after everything it has to report so far.
  void requestTotals();
  /// The sandbox is gone: the last reports, then the end of the process. Waits at most a second for
  /// each report and 30 seconds in all.
  void finish(const std::function<void(const Report&)>& take);

 private:
  Process() = default;
  static Result<Process> spawn(const Settings& settings, sys::Fd link, sys::Fd broker, int init, int listener);

  std::string capture_;  ///< startForSession(): what is captured, as the process said
  sys::HelperProcess helper_;
  sys::Fd control_;
  std::uint64_t opened_ = 0, confirmed_ = 0;  ///< connections that were reported as opened, and confirmed as recorded
};

}  // namespace caisson::egress
