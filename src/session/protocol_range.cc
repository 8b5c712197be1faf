// In a separate source, so that a test program can link another range: an older or newer caisson.
#include "session/protocol.h"

namespace caisson::session {

ProtocolRange ownProtocols() { return {.oldest = kOldestProtocol, .newest = kNewestProtocol}; }

}  // namespace caisson::session
