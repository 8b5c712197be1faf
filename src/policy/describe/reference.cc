#include "policy/describe/reference.h"

#include "policy/decode/convert.h"
#include "policy/describe/explain.h"
#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/profiles/profiles.h"

namespace caisson::policy {
namespace {

std::string_view sectionOf(std::string_view key) {
  const std::size_t dot = key.find('.');
  return dot == std::string_view::npos ? std::string_view("policy") : key.substr(0, dot);
}

/// Escapes `|`, which would end the cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '|') result += '\\';
    result += letter;
  }
  return result;
}

struct Entry {
  std::string type, standard, ceiling;
};

Entry describeEntry(const Field& field, const Policy& defaults) {
  return {expectation(field), valueInForce(field, defaults), ceilingText(field.ceiling, ceilingsOf(Level::full))};
}

void appendMarkdown(std::string& out, const Field& field, const Entry& entry) {
  out += "| `" + std::string(field.key) + "` | " + cell(entry.type) + " | " + cell(entry.standard) + " | " +
         cell(entry.ceiling) + " | " + cell(field.description) + " |\n";
}

void appendPlain(std::string& out, const Field& field, const Entry& entry) {
  out += std::string(field.key) + "\n    " + std::string(field.description) + "\n    " + entry.type + "; default " +
         entry.standard;
  if (!entry.ceiling.empty()) out += "; at most " + entry.ceiling;
  out += "\n";
}

}  // namespace

std::string renderReference(bool markdown) {
  const Policy defaults = *builtin("bash");
  std::string out;
  std::string_view section;
  for (const Field& field : fields()) {
    if (sectionOf(field.key) != section) {
      section = sectionOf(field.key);
      out += out.empty() ? "" : "\n";
      if (markdown) {
        out +=
            "## " + std::string(section) + "\n\n| key | value | default | at most | meaning |\n|---|---|---|---|---|\n";
      }
    }
    const Entry entry = describeEntry(field, defaults);
    markdown ? appendMarkdown(out, field, entry) : appendPlain(out, field, entry);
  }
  return out;
}

}  // namespace caisson::policy
