// Background commands. The session keeps them and their output, so any server that knows the sandbox can query them.
// Their exec_id is `b` and the session's number.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

/// Parses such an exec_id; nothing for any other text.
std::optional<std::uint32_t> backgroundNumber(const std::string& exec_id);
std::string backgroundId(std::uint32_t number);

/// Describes a background command in the format of other commands. `offset`: where its standard output is read from;
/// standard error is read from the start. `note` is for the model.
Json describeCommand(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, std::uint32_t number,
                     std::uint64_t offset, const std::string& note = {});
/// Waits for the end of a background command, at most `patience`, while sending progress, then describes it.
Json describeBackground(Sandboxes& sandboxes, Call& call, Sandbox& sandbox, std::uint32_t number,
                        std::chrono::milliseconds patience, std::uint64_t offset);

/// The beginning and the end of a text that is too long for a response, with the cut marked; `cut` is set then. A text
/// up to 16,000 bytes is returned as it is.
std::string abbreviated(const std::string& text, bool& cut);

}  // namespace caisson::mcp
