// `caisson serve`: runs the HTTP server until a signal arrives.
#pragma once

#include <string>

#include "base/error.h"
#include "service/settings.h"

namespace caisson::server {

struct ServeOptions {
  service::Settings settings;  ///< of the file and of the command line
  std::string program;         ///< the path of the caisson program
  std::string version;
  bool readable = false;  ///< messages for a person, not JSON lines
};

/// The address that is used if none is given.
inline constexpr const char* kDefaultAddress = "127.0.0.1:7080";

Result<void> serve(ServeOptions options);

}  // namespace caisson::server
