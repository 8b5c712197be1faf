// A client's connection to the supervisor of a session. Every request has a deadline.
#pragma once

#include <chrono>
#include <optional>

#include "base/error.h"
#include "session/protocol.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// For requests that are answered at once.
inline constexpr auto kRequestTimeout = std::chrono::seconds(10);
/// For requests that start or end a sandbox.
inline constexpr auto kSandboxTimeout = std::chrono::seconds(45);

class SupervisorConnection {
 public:
  /// Connects and waits for the welcome. Nothing if no supervisor runs; an error if it does not answer within
  /// kRequestTimeout, or if it speaks no version of the protocol that we speak (isOtherVersion). `directory`:
  /// of the session.
  static Result<std::optional<SupervisorConnection>> open(const sys::RootDir& directory) {
    return open(directory, false);
  }
  /// The same, also for a supervisor of a version that we do not speak: it understands only `settle`.
  static Result<std::optional<SupervisorConnection>> openAny(const sys::RootDir& directory) {
    return open(directory, true);
  }

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// As received on connecting, or after startSandbox().
  [[nodiscard]] const Welcome& welcome() const { return welcome_; }
  /// Makes the supervisor build the sandbox, if none runs; the caller holds the session's lock. `session`: the id, for
  /// errors.
  Result<void> startSandbox(const StartOptions& options, std::string_view session);
  /// Sends a message without waiting for a response. Returns 0 or the errno; EPIPE: the supervisor exited.
  [[nodiscard]] int send(MessageType type, const std::string& value, std::vector<int> descriptors = {}) const;
  /// Whether the supervisor has closed its end.
  [[nodiscard]] bool isClosed() const;

  /// Sends a request and waits for the response, `done` or `started`. A `failed` response, a timeout and the exit of
  /// the supervisor (isGone) are errors. `call` and `object`: for errors.
  Result<Packet> ask(MessageType type, const std::string& value, std::string_view call, std::string_view object,
                     std::vector<int> descriptors = {},
                     std::chrono::steady_clock::duration timeout = kRequestTimeout) const;

 private:
  SupervisorConnection(sys::Fd socket, bool any_version) : socket_(std::move(socket)), any_version_(any_version) {}
  static Result<std::optional<SupervisorConnection>> open(const sys::RootDir& directory, bool any_version);
  /// Waits for the next packet, of any type. An error at the deadline (ETIMEDOUT), if the supervisor exited (isGone),
  /// or if it speaks no version that we speak.
  Result<Packet> receive(std::string_view call, std::string_view object,
                         std::chrono::steady_clock::time_point deadline) const;

  sys::Fd socket_;
  bool any_version_;
  Welcome welcome_;
};

/// The supervisor exited during a request: the session ended, or its supervisor was killed.
Error goneError(std::string_view call, std::string_view object);
/// Whether an error means that the sandbox is not running: the request may be retried.
bool isGone(const Error& error);

/// Ends the session's sandbox and supervisor, of any version: by a request, or by a kill if that fails or is not
/// answered for 15 seconds. Not an error if neither runs.
Result<void> endSandbox(const sys::RootDir& directory);

}  // namespace caisson::session
