// A failure in the child, as a fixed record to the supervisor. A file of its own: pid 1 of a session, a program without
// a C library, is made of it as well.
#include "isolation/child.h"

namespace caisson::isolation {

void reportAndExit(const Block& block, Stage stage, const char* call, const char* object, long error) {
  Message message{};
  message.kind = MessageKind::failure;
  message.stage = static_cast<std::uint8_t>(stage);
  message.value = static_cast<std::int32_t>(error);
  copyText(message.call, kCallBytes, call);
  copyText(message.object, kObjectBytes, object);
  raw(SYS_write, block.control, &message, sizeof(message));  // the one call every filter leaves open
  for (;;) raw(SYS_exit_group, 125);
}

}  // namespace caisson::isolation
