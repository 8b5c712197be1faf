// A tool as a table: its texts for the model, its parameters, its result, and its function. The schema sent to clients
// and the check of their arguments use the same rows, so that they can't differ.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/protocol/results.h"

namespace caisson::mcp {

class Sandboxes;

enum class ParameterType : std::uint8_t { text, integer, boolean, texts, variables };

struct Parameter {
  std::string_view name;
  ParameterType type = ParameterType::text;
  bool required = false;
  std::string_view description;
  std::int64_t least = 0, most = 0;  ///< of integers; both 0: any
  std::string_view choices;          ///< of texts: "a|b|c"; empty: any
  bool any_bytes = false;            ///< of texts: NUL is allowed (the content of a file)
  std::string_view alias;            ///< another name for the same value
  std::string_view fixed_by;         ///< not offered if the operator decided about this (operator_bounds.h)
};

// Values of Parameter::fixed_by: the policy key that the parameter sets, if it is one.
inline constexpr std::string_view kFixedProfile = "profile", kFixedImage = "filesystem.root",
                                  kFixedUser = "isolation.user", kFixedWorkspace = "filesystem.workspace.path",
                                  kFixedEmpty = "filesystem.workspace.mode";

/// The hints about a tool's behaviour that clients get.
struct Behaviour {
  bool read_only = false;
  bool destructive = true;
  bool idempotent = false;
  bool open_world = false;
  bool task = false;  ///< may be answered with a task
};

/// The arguments of a call, checked against the rows.
class Arguments {
 public:
  explicit Arguments(const Json& values) : values_(values) {}
  // A missing argument is empty, or false.
  [[nodiscard]] std::string text(std::string_view name) const { return textAt(values_, name).value_or(""); }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const { return integerAt(values_, name); }
  [[nodiscard]] bool flag(std::string_view name) const { return booleanAt(values_, name).value_or(false); }
  [[nodiscard]] bool has(std::string_view name) const { return find(values_, name) != nullptr; }
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  /// A path, or paths, decoded as the argument NAME_encoding says. Nothing if the base64 is invalid or has a NUL.
  [[nodiscard]] std::optional<std::string> path(std::string_view name) const;
  [[nodiscard]] std::optional<std::vector<std::string>> paths(std::string_view name) const;
  [[nodiscard]] std::map<std::string, std::string> variables(std::string_view name) const;

 private:
  const Json& values_;
};

struct Tool {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  std::span<const Parameter> parameters;
  std::string_view output;  ///< JSON Schema properties of structuredContent, without the outer braces
  Behaviour behaviour;
  Outcome (*perform)(Sandboxes& sandboxes, Call& call, const Arguments& arguments) = nullptr;
};

// A name that is not UTF-8 is base64 in results, beside a member NAME_encoding; these take it back.
inline constexpr Parameter kPathEncoding{
    .name = "path_encoding", .description = "Of path: utf-8 (default) or base64.", .choices = "utf-8|base64"};
inline constexpr std::string_view kInvalidPath = "a path is not valid base64, or contains NUL";
inline constexpr Parameter kPathsEncoding{
    .name = "paths_encoding", .description = "Of all paths: utf-8 (default) or base64.", .choices = "utf-8|base64"};

struct OperatorBounds;

/// The entry in tools/list, without the parameters that the operator decided.
Json describeTool(const Tool& tool, const OperatorBounds& bounds);

/// Returns an error that names the parameter; empty if the arguments are valid. Accepts parameters that the operator
/// decided: findExcess() compares them.
std::string checkArguments(const Tool& tool, const Json& values);

/// The arguments with every alias replaced by the parameter's own name. They must have passed checkArguments().
Json withoutAliases(const Tool& tool, Json values);

/// A tool's result: `value` as text and, if the client's version has it, as structuredContent.
Json structuredResult(const Call& call, Json value, bool failed = false);

/// Adds a resource link, for clients that support them. The address must be in structuredContent as well: many hosts
/// show nothing else to the model.
void addLink(const Call& call, Json& result, const std::string& uri, std::string_view name, std::string_view type,
             std::optional<std::uint64_t> size = {});

}  // namespace caisson::mcp
