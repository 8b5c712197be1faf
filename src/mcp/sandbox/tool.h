// A tool as a table: its words for the model, its parameters, what it returns, and the function that does it. The
// schema that clients get and the check of what they send are made from the same rows, so that they can't disagree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/results.h"

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
  bool any_bytes = false;            ///< of texts: NUL is no mistake (the content of a file)
};

/// What a caller may expect of a tool, said honestly.
struct Behaviour {
  bool read_only = false;
  bool destructive = true;
  bool idempotent = false;
  bool open_world = false;
};

/// The arguments of a call, checked against the rows.
class Arguments {
 public:
  explicit Arguments(const Json& values) : values_(values) {}
  [[nodiscard]] std::string text(std::string_view name) const { return textAt(values_, name).value_or(""); }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name) const { return integerAt(values_, name); }
  [[nodiscard]] bool flag(std::string_view name) const { return booleanAt(values_, name).value_or(false); }
  [[nodiscard]] bool has(std::string_view name) const { return find(values_, name) != nullptr; }
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
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

/// As tools/list shows it.
Json describeTool(const Tool& tool);

/// What is wrong with the arguments, in words that name the parameter; empty if nothing is.
std::string checkArguments(const Tool& tool, const Json& values);

/// The result of a tool: everything is in structuredContent, and once more as text for clients that know only that.
Json structuredResult(const Call& call, Json value, bool failed = false);

/// Adds a pointer to something that can be fetched by address, for clients that know such pointers. The address must be
/// in structuredContent as well: many hosts show nothing else to the model.
void addLink(const Call& call, Json& result, const std::string& uri, std::string_view name, std::string_view type);

}  // namespace caisson::mcp
