// `caisson` of another version: it speaks the session protocols OLDEST_PROTOCOL to NEWEST_PROTOCOL.
#include "session/protocol.h"

namespace caisson::session {

// Instead of the one in protocol_range.cc, which the linker then leaves out.
ProtocolRange ownProtocols() { return {.oldest = OLDEST_PROTOCOL, .newest = NEWEST_PROTOCOL}; }

}  // namespace caisson::session
