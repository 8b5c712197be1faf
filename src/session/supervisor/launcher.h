// The launcher of a session: does for the supervisor what the supervisor's confinement forbids.
//
// `caisson __session supervise ID` is the launcher. It forks the supervisor and then only serves it: starts workers and
// alert programs, mounts new layers and masks, measures unreadable directories, and forks the next supervisor when the
// sandbox must be rebuilt. It parses no data from a payload or the egress. It exits with its supervisor.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "session/protocol.h"
#include "session/store/store.h"
#include "session/supervisor/ports.h"
#include "session/supervisor/remount.h"
#include "supervise/limits/closed_tree.h"
#include "supervise/workspace/live_mask.h"

namespace caisson::session {

/// State passed to the next supervisor, which rebuilds the sandbox for `client`. Empty for the first supervisor.
struct Succession {
  sys::Fd listener, client;
  std::string start;  ///< the client's StartOptions, encoded
  std::vector<KeptPort> ports;
};

/// The supervisor's end of the socket to the launcher. Functions that wait for a response have a timeout, after which
/// they fail; a late response is ignored.
class Launcher {
 public:
  Launcher() = default;
  explicit Launcher(sys::Fd socket) : socket_(std::move(socket)) {}

  /// remountOverlay() in the launcher; waits at most 12 seconds.
  Result<void> remount(int init_pidfd, int layer, const OverlayOptions& options);
  /// Hides files of the running sandbox. Does not wait: the result reports when the masks are in place.
  Result<supervise::LiveMask> mask(int init_pidfd, const supervise::MaskTarget& target);
  /// Measures a tree that the supervisor cannot read completely (supervise/closed_tree.h). Does not wait. nullopt
  /// without a deadline in `bounds`, or if the launcher is gone or busy.
  /// `sandbox`: the sandbox's user namespace, if it has subordinate ids, else -1.
  std::optional<supervise::ClosedMeasure> measure(int directory, const supervise::TreeBounds& bounds, int sandbox);
  /// supervise::changeModeInside() in the launcher; waits at most two seconds. Returns an errno, 0 after success.
  int setMode(int sandbox, int object, mode_t mode);
  /// Sends a text to the owner's alert programs and webhooks; returns the failures. Waits at most a minute.
  std::vector<std::string> sendAlert(const std::string& text);
  /// Starts a worker that merges the session's layers: deep histories, or with `reclaim` whenever there are two.
  void squash(bool reclaim);
  /// Makes the launcher fork the next supervisor with copies of all these, without waiting for it; the caller then
  /// exits. False: the launcher is gone.
  bool succeed(int listener, int client, const std::string& start, const std::vector<KeptPort>& ports);

 private:
  /// Each request carries a new socket for the reply, so that a late one is not taken for that to another request.
  Result<Packet> request(MessageType type, const std::string& value, std::vector<int> descriptors,
                         std::chrono::steady_clock::duration timeout);

  sys::Fd socket_;
};

/// `caisson __session supervise ID`. Writes "ready", or "failed" and an encoded Error, to `status` once; returns the
/// exit status.
int superviseMain(const Store& store, const std::string& id, int status);

}  // namespace caisson::session
