// What is kept of a background command in the session's logs/: N.json says what was started, N.out and N.err hold its
// output, N.end is written by pid 1 when it has ended, N.refused lists the calls that were refused, if any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline std::string fileName(std::uint32_t exec, const char* ending) { return std::to_string(exec) + ending; }

struct StartedCommand {
  std::vector<std::string> words;
  std::int64_t started = 0;  ///< seconds since 1970
};
/// N.json. One that is damaged gives an empty command.
Result<StartedCommand> readCommand(const sys::RootDir& logs, std::uint32_t exec);

}  // namespace caisson::session
