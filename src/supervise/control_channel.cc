#include "supervise/control_channel.h"

#include <sys/socket.h>

#include <span>

#include "sys/receive.h"

namespace caisson::supervise {

Error errorOf(isolation::Message message) {
  message.call[isolation::kCallBytes - 1] = 0;
  message.object[isolation::kObjectBytes - 1] = 0;
  return withCode(sysError(static_cast<Stage>(message.stage), message.call, message.object, message.error),
                  static_cast<ErrorCode>(message.code));
}

Channel receive(int control, Arrival& arrival) {
  const auto bytes = std::as_writable_bytes(std::span(&arrival.message, 1));
  const ssize_t got = sys::receiveMessage(control, bytes, arrival.descriptors, MSG_DONTWAIT, &arrival.sender);
  if (got == 0) return Channel::closed;
  if (got != static_cast<ssize_t>(bytes.size())) return Channel::empty;
  return Channel::message;
}

Error causeOf(Error error, int control) {
  for (;;) {
    Arrival arrival;
    if (receive(control, arrival) != Channel::message) return error;
    if (arrival.message.kind == isolation::MessageKind::failure) return errorOf(arrival.message);
  }
}

}  // namespace caisson::supervise
