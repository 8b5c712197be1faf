// The answer to one HTTP request while it is produced: the thread that serves the call adds messages, and the
// connection takes them.
//
// A stream of the older versions keeps sent events, so that a client whose connection broke can fetch the rest
// (`Last-Event-ID`). Bounded: old events are dropped, and so are notifications to a peer that does not read.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "mcp/server/channel.h"
#include "sys/fd.h"

namespace caisson::mcp {

class HttpStream final : public Channel {
 public:
  /// `name` is the prefix of its event ids; empty: events have no id and are not kept.
  explicit HttpStream(std::string name);

  /// Adds a message; a response ends the stream. Drops notifications while 4 MiB wait, and everything after the end.
  void send(const Json& message) override { add(message, nullptr); }
  void sendAnswer(const Json& message, std::shared_ptr<void> memory) override { add(message, std::move(memory)); }
  /// Closes the connection before the answer. Ignored for a stream without a name.
  void disconnect() override;
  /// Ends the stream; for streams that no response ends.
  void finish();

  struct Event {
    std::size_t number = 0;  ///< from 1
    std::string text;        ///< one line of JSON
    bool response = false;
    int error_code = 0;            ///< of a response; 0: a result
    std::shared_ptr<void> memory;  ///< of a response: counts it as unread; keep it until the peer has the text
  };
  /// Returns the first kept event after `number`, if there is one. May drop those up to `number`: the caller has sent
  /// them.
  std::optional<Event> after(std::size_t number);
  /// All events were sent. Keeps small ones for a client that lost the connection before it read them.
  void dropSent();
  /// Whether the stream has ended and no event follows `number`.
  [[nodiscard]] bool endsAt(std::size_t number) const;
  /// Whether to close the connection now, before the answer. True once.
  bool takeDisconnect();

  /// Becomes readable on a new event, and on finish() and disconnect().
  [[nodiscard]] int descriptor() const { return wake_.get(); }
  /// Calls `notify` then as well; replaces an earlier one.
  void onWake(std::function<void()> notify);
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void add(const Json& message, std::shared_ptr<void> memory);
  void wake() const;

  std::string name_;
  sys::Fd wake_;
  mutable std::mutex mutex_;
  std::function<void()> notify_;
  std::deque<Event> events_;
  std::size_t last_ = 0;
  std::size_t held_ = 0;  ///< bytes
  bool finished_ = false;
  bool disconnect_ = false;
};

}  // namespace caisson::mcp
