// A conversation with pid 1 of a session.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "base/error.h"
#include "isolation/block.h"
#include "session/protocol.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

class Connection {
 public:
  /// Nothing when pid 1 is not there; an error when it cannot be asked.
  static Result<std::optional<Connection>> open(const sys::RootDir& directory);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// Whether it could be written; false: pid 1 is gone.
  [[nodiscard]] bool send(const Request& request, std::span<const int> descriptors = {}) const;

  /// What pid 1 said, or a payload before its exec.
  struct Said {
    std::variant<Reply, isolation::Message> what;
    sys::Fd descriptor;  ///< that came with it
    sys::Fd second;      ///< and another one
  };
  /// The next, waiting for it if `wait`. Nothing: no more can come (or, without waiting, nothing is there now: `closed`
  /// tells which).
  [[nodiscard]] std::optional<Said> receive(bool wait, bool& closed) const;

  /// Asks and waits for the answer. Refusals are errors.
  Result<Said> ask(const Request& request, std::string_view call, std::string_view object,
                   std::span<const int> descriptors = {}) const;

 private:
  explicit Connection(sys::Fd socket) : socket_(std::move(socket)) {}
  sys::Fd socket_;
};

/// What a failure before exec says, as an error.
Error errorOf(isolation::Message message);

/// pid 1 went away while it was asked: the session ended, or was ended.
Error goneError(std::string_view call, std::string_view object);

}  // namespace caisson::session
