// Commands that were started in the background. The session itself keeps them and their output, so that they can be
// asked for by any server that knows the sandbox. Their exec_id is `b` and the session's number.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

/// The number in an exec_id of that kind.
std::optional<std::uint32_t> backgroundNumber(const std::string& exec_id);
std::string backgroundId(std::uint32_t number);

/// Waits for its end with signs of life, then describes it: the shape is that of other commands.
Json describeBackground(Sandboxes& sandboxes, Call& call, Sandbox& sandbox, std::uint32_t number,
                        std::chrono::milliseconds patience, std::uint64_t offset);

/// The beginning and the end of a text that is too long for an answer, with the cut in plain sight.
std::string abbreviated(const std::string& text, bool& cut);

}  // namespace caisson::mcp
