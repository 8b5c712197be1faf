// Explains to a model why a command failed, if the sandbox's rules are the reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

/// A command that failed.
struct FailedCommand {
  std::vector<Denial> denials;  ///< what the engine recorded of it
  std::string_view error_output;
};

/// One entry per denial of the network or of a path, at most eight, as JSON objects with `kind`, `explanation` and
/// `remedy`. The output of the command only suggests what to look at: each entry is confirmed by the engine's records,
/// or by the policy and the files of the sandbox. Text that the command chose is in quotes and without control
/// characters.
Json explainFailure(Sandboxes& sandboxes, Sandbox& sandbox, const FailedCommand& command);

/// Adds the entries to a tool's structured value.
void addExplanations(Json& value, const Json& explanations);
/// Adds them as text to a tool's result.
void addExplanationText(Json& result, const Json& explanations);

/// What a model can do about a denied host.
std::string networkRemedy(const OperatorBounds& bounds, const Denial& denial);

}  // namespace caisson::mcp
