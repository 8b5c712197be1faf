// Where a session's open ports are recorded: one file per port, locked by the supervisor while the port is open.
#pragma once

#include <cstdint>
#include <string>

namespace caisson::session {

inline constexpr const char* kPortDirectory = "ports";

/// The file of a port, relative to the session's directory. `inward`: see PortOptions.
inline std::string portFile(std::uint16_t port, bool inward) {
  return std::string(kPortDirectory) + (inward ? "/in-" : "/out-") + std::to_string(port);
}

}  // namespace caisson::session
