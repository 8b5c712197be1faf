// Asking the person behind the client (SPEC A1): by elicitation, in the words of a yes or no. Without anyone to ask the
// answer is no.
#pragma once

#include <string>
#include <string_view>

#include "mcp/features.h"

namespace caisson::mcp {

enum class Consent : std::uint8_t { given, refused, not_asked_yet, nobody_to_ask };

/// What the person said to the question `key` in this call.
Consent consentTo(const Call& call, std::string_view key);

/// The question. `message` is shown to a person: parts that a model or payload chose must be showable().
InputRequest askConsent(std::string message);

/// Whether a text can be shown without deceiving: no control, bidirectional or invisible characters, valid UTF-8.
bool showable(std::string_view text);

}  // namespace caisson::mcp
