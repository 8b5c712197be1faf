// The answer to one HTTP request while it is being made: messages are put in by whoever serves the call and taken out
// by the connection's own thread, which alone touches the socket.
//
// A stream of the older versions keeps what it sent, so that a client whose connection broke can fetch the rest
// (`Last-Event-ID`). Bounded: what is kept for that is cut, and notifications to a peer that does not read are dropped.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "mcp/channel.h"
#include "sys/fd.h"

namespace caisson::mcp {

class HttpStream final : public Channel {
 public:
  /// `name` is the beginning of its event ids; empty: events carry none and nothing is kept.
  explicit HttpStream(std::string name);

  void send(const Json& message) override;
  void disconnect() override;
  /// No more messages will come; for streams that no response ends.
  void finish();

  struct Event {
    std::size_t number = 0;  ///< from 1
    std::string text;        ///< one line of JSON
    bool response = false;
    int error_code = 0;  ///< of a response; 0: a result
  };
  /// The event after `number`, if it is there.
  std::optional<Event> after(std::size_t number);
  /// Whether nothing comes after `number` any more.
  [[nodiscard]] bool endsAt(std::size_t number) const;
  /// Whether the connection should end now, before the answer. True once.
  bool takeDisconnect();

  /// Becomes readable when there is something new.
  [[nodiscard]] int descriptor() const { return wake_.get(); }
  void clearWake() const;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void wake() const;

  std::string name_;
  sys::Fd wake_;
  mutable std::mutex mutex_;
  std::deque<Event> events_;
  std::size_t last_ = 0;
  std::size_t held_ = 0;  ///< bytes
  bool finished_ = false;
  bool disconnect_ = false;
};

}  // namespace caisson::mcp
