// Build tool: turns profiles/*.toml into C++ that fills a Policy field by field, so that a built-in profile needs no
// parsing when a sandbox starts.
//
//   profile_compiler OUT.cc profiles/bash.toml profiles/shell.toml ...
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "policy/decode/decode.h"
#include "policy/fields.h"
#include "policy/units.h"

namespace {

using namespace caisson::policy;

/// A C++ string literal. Octal escapes have exactly three digits, so the next character cannot extend them.
std::string literal(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (byte < 0x20 || byte >= 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\%03o", static_cast<unsigned>(byte));
      result += escape;
    } else {
      result += letter;
    }
  }
  return result + "\"";
}

struct ToCode {
  const Field& field;

  [[nodiscard]] std::string target() const { return "policy." + std::string(field.key); }
  [[nodiscard]] std::string choice(std::string_view name) const {
    const auto index = std::ranges::find(field.choices, name) - field.choices.begin();
    return (field.kind == Kind::choices ? "OptionalLayer{" : "decltype(" + target() + "){") + std::to_string(index) +
           "}";
  }

  std::string operator()(std::monostate) const { return "std::nullopt"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::uint64_t value) const { return std::to_string(value) + "U"; }
  std::string operator()(double value) const { return "double{" + formatNumber(value) + "}"; }
  std::string operator()(const std::string& value) const {
    return field.kind == Kind::choice ? choice(value) : literal(value);
  }
  std::string operator()(const std::vector<std::string>& value) const {
    std::string text = field.optional ? "std::vector<std::string>{" : "{";
    for (const std::string& element : value)
      text += (field.kind == Kind::choices ? choice(element) : literal(element)) + ", ";
    return text + "}";
  }
  std::string operator()(const std::vector<std::uint64_t>& value) const {
    std::string text = "{";
    for (const std::uint64_t element : value) text += std::to_string(element) + "U, ";
    return text + "}";
  }
  std::string operator()(const std::map<std::string, std::string>& value) const {
    std::string text = "{";
    for (const auto& [name, member] : value) text += "{std::string(" + literal(name) + "), " + literal(member) + "}, ";
    return text + "}";
  }
  std::string operator()(const std::vector<Credential>&) const { return "{}"; }  // no built-in profile has a secret
  std::string operator()(const std::vector<Tmpfs>& value) const {
    std::string text = "{";
    for (const Tmpfs& mount : value) {
      text += "Tmpfs{" + literal(mount.path) + ", " + std::to_string(mount.size) + "U, " +
              std::to_string(mount.inodes) + "U, " + (mount.exec ? "true" : "false") +
              ", TmpfsAccess::" + std::string(name(mount.access)) +
              ", DirectoryStore::" + std::string(name(mount.store)) + ", " + literal(mount.cache) + "}, ";
    }
    return text + "}";
  }
};

/// Generates the function of one profile: only fields that differ from the model's defaults.
std::string functionOf(const Policy& policy, std::size_t index) {
  const Policy defaults;
  std::string text = "Policy makeProfile" + std::to_string(index) + "() {\n  Policy policy;\n";
  for (const Field& field : fields()) {
    const Value value = field.get(policy);
    if (value == field.get(defaults)) continue;
    const ToCode code{field};
    text += "  " + code.target() + " = " + std::visit(code, value) + ";\n";
  }
  return text + "  return policy;\n}\n\n";
}

caisson::Result<Policy> read(const std::string& path) {
  auto text = readRegularFile(path);
  if (!text) return std::unexpected(text.error());
  auto document = readText(*text, Format::toml, path);
  if (!document) return std::unexpected(document.error());
  const Policy base;
  Origin origin;
  origin.base = &base;
  return decode(*document, origin);
}

int compile(int count, char** arguments) {
  std::string functions;
  std::string names;
  std::string cases;
  for (int index = 2; index < count; ++index) {
    const std::string path = arguments[index];
    const auto policy = read(path);
    if (!policy) {
      std::fprintf(stderr, "%s\n", policy.error().message().c_str());
      return 1;
    }
    if (policy->name != std::filesystem::path(path).stem()) {
      std::fprintf(stderr, "%s: the profile's name must be the file's\n", path.c_str());
      return 1;
    }
    const auto number = static_cast<std::size_t>(index) - 2;
    functions += functionOf(*policy, number);
    names += literal(policy->name) + ", ";
    cases += "  if (name == " + literal(policy->name) + ") return makeProfile" + std::to_string(number) + "();\n";
  }
  std::ofstream out(arguments[1]);
  out << "// Made by profile_compiler from src/policy/profiles. Do not edit.\n#include "
         "\"policy/profiles/profiles.h\"\n\n"
      << "namespace caisson::policy {\n\nnamespace {\n\nconstexpr std::string_view kNames[] = {" << names << "};\n\n"
      << functions << "}  // namespace\n\nstd::optional<Policy> builtin(std::string_view name) {\n"
      << cases << "  return std::nullopt;\n}\n\n"
      << "std::span<const std::string_view> builtinNames() { return kNames; }\n\n}  // namespace caisson::policy\n";
  out.close();
  return out ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: profile_compiler OUT.cc PROFILE.toml...\n");
    return 2;
  }
  return compile(count, arguments);
}
