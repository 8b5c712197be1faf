// The launcher of a session: does for the supervisor what the supervisor's confinement forbids.
//
// `caisson __session supervise ID` is the launcher. It forks the supervisor and then only serves it: starts workers and
// alert programs, mounts new layers, measures closed directories, and forks the next supervisor when the sandbox has to
// be built again. It parses nothing that a payload or the egress wrote. It exits with its supervisor.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "session/layers/layer_sizes.h"
#include "session/protocol.h"
#include "session/store/store.h"
#include "session/supervisor/ports.h"
#include "session/supervisor/remount.h"

namespace caisson::session {

/// What a supervisor leaves to the next one, which builds the sandbox again for `client`.
struct Succession {
  sys::Fd listener, client;
  std::string start;  ///< the client's StartOptions, encoded
  std::vector<KeptPort> ports;
};

/// The supervisor's end.
class Launcher {
 public:
  Launcher() = default;
  explicit Launcher(sys::Fd socket) : socket_(std::move(socket)) {}

  /// As remountOverlay().
  Result<void> remount(int init_pidfd, int layer, const OverlayOptions& options);
  /// The size of a layer with directories that their owner has closed.
  std::optional<LayerSize> measure(int layer);
  /// Sends a text to the alert programs and webhooks of the owner; returns what did not work.
  std::vector<std::string> sendAlert(const std::string& text);
  /// Has the session's layers merged by a worker: deep histories, or with `reclaim` whenever there are two.
  void squash(bool reclaim);
  /// Has the next supervisor forked, with copies of all these; the caller exits then. False: the launcher is gone.
  bool succeed(int listener, int client, const std::string& start, const std::vector<KeptPort>& ports);

 private:
  Result<Packet> ask(MessageType type, const std::string& value, std::vector<int> descriptors,
                     std::chrono::steady_clock::duration timeout);

  sys::Fd socket_;
};

/// `caisson __session supervise ID`. Writes "ready" or an encoded Error to `status` once; returns the exit status.
int superviseMain(const Store& store, const std::string& id, int status);

}  // namespace caisson::session
