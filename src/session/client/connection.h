// A client's connection to the supervisor of a session. Every request has a deadline.
#pragma once

#include <chrono>
#include <optional>

#include "base/error.h"
#include "session/protocol.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// For requests that the supervisor answers at once. Starting or ending a sandbox may take longer.
inline constexpr auto kRequestTimeout = std::chrono::seconds(10);
inline constexpr auto kSandboxTimeout = std::chrono::seconds(45);

class SupervisorConnection {
 public:
  /// Nothing when no supervisor runs.
  static Result<std::optional<SupervisorConnection>> open(const sys::RootDir& directory);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] const Welcome& welcome() const { return welcome_; }
  /// Has the supervisor build the sandbox; the caller holds the session's lock.
  Result<void> startSandbox(const StartOptions& options, std::string_view session);
  /// 0, or the errno; EPIPE: the supervisor is gone.
  [[nodiscard]] int send(MessageType type, const std::string& value, std::vector<int> descriptors = {}) const;
  /// Whether the supervisor has closed its end.
  [[nodiscard]] bool isClosed() const;

  /// Sends a request and waits for the answer, `done` or `started`. A refusal is an error, as is an answer that comes
  /// too late.
  Result<Packet> ask(MessageType type, const std::string& value, std::string_view call, std::string_view object,
                     std::vector<int> descriptors = {},
                     std::chrono::steady_clock::duration timeout = kRequestTimeout) const;

 private:
  explicit SupervisorConnection(sys::Fd socket) : socket_(std::move(socket)) {}
  Result<Packet> receive(std::string_view call, std::string_view object,
                         std::chrono::steady_clock::time_point deadline) const;

  sys::Fd socket_;
  Welcome welcome_;
};

/// The supervisor went away while it was asked: the session was ended, or its supervisor was killed.
Error goneError(std::string_view call, std::string_view object);
/// Whether an error says that the sandbox is not running (any more): the request may be tried again.
bool isGone(const Error& error);

/// Ends the session's sandbox and supervisor: in order where the supervisor answers, by force where not.
Result<void> endSandbox(const sys::RootDir& directory);

}  // namespace caisson::session
