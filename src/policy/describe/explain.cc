#include "policy/describe/explain.h"

#include "policy/fields.h"
#include "policy/profiles/presets.h"
#include "policy/rules/severity.h"
#include "policy/units.h"

namespace caisson::policy {

std::string ceilingText(Ceiling ceiling, const Ceilings& ceilings) {
  switch (ceiling) {
    case Ceiling::none: return {};
    case Ceiling::cpus: return ceilings.cpus == kAllCpus ? "all" : formatNumber(ceilings.cpus);
    case Ceiling::memory: return formatSize(ceilings.memory);
    case Ceiling::swap: return formatSize(ceilings.swap);
    case Ceiling::processes: return std::to_string(ceilings.processes);
    case Ceiling::open_files: return std::to_string(ceilings.open_files);
    case Ceiling::wall: return formatSeconds(ceilings.wall_seconds);
    case Ceiling::output: return formatSize(ceilings.output);
  }
  return {};
}

std::string valueInForce(const Field& field, const Policy& policy) {
  const Value value = field.get(policy);
  const std::string text = display(field, value);
  if (!std::holds_alternative<std::monostate>(value)) return text;
  if (field.key == "syscalls.critical") return display(field, severityList(policy.syscalls, Severity::critical));
  if (field.key == "syscalls.high") return display(field, severityList(policy.syscalls, Severity::high));
  if (field.ceiling == Ceiling::wall) return formatSeconds(effectiveWallSeconds(policy));
  if (field.ceiling == Ceiling::output) return formatSize(effectiveOutput(policy));
  return text;
}

namespace {

std::string line(const Field& field, std::string_view label, const Policy& policy, const Policy& defaults,
                 const Ceilings& ceilings) {
  std::string text = "  " + std::string(label);
  text.append(text.size() < 34 ? 34 - text.size() : 1, ' ');
  text += valueInForce(field, policy);
  std::string remarks;
  if (field.get(policy) == field.get(defaults)) remarks = "default";
  if (const std::string ceiling = ceilingText(field.ceiling, ceilings); !ceiling.empty()) {
    remarks += (remarks.empty() ? "at most " : ", at most ") + ceiling;
  }
  if (!remarks.empty()) text += "  (" + remarks + ")";
  return text;
}

/// The text with a line end; control characters in it, line ends included, become '?'. It comes from a policy file and
/// is printed among rows that a reader must be able to trust.
std::string oneRow(std::string text) {
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = '?';
  }
  return text + "\n";
}

/// Cuts text after 300 bytes: a value as long as a screen would push the other rows off it.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMaxCharacters = 300;
  if (text.size() <= kMaxCharacters) return text;
  return text.substr(0, kMaxCharacters) + "… (" + std::to_string(text.size() - kMaxCharacters) + " more characters)";
}

}  // namespace

std::string explain(const Policy& policy) { return explain(policy, ceilingsOf(policy)); }

std::string explain(const Policy& policy, const Ceilings& ceilings) {
  const Policy defaults;
  std::string text;
  std::string_view section = "?";
  for (const Field& field : fields()) {
    const std::size_t dot = field.key.find('.');
    const std::string_view own = dot == std::string_view::npos ? std::string_view("policy") : field.key.substr(0, dot);
    if (own != section) {
      section = own;
      if (!text.empty()) text += "\n";
      text += std::string(section) + "\n";
    }
    const std::string_view label = dot == std::string_view::npos ? field.key : field.key.substr(dot + 1);
    text += oneRow(line(field, label, policy, defaults, ceilings));
  }
  text += "\npresets (--allow-host preset:NAME)\n";
  for (const Preset& preset : presets()) {
    std::string row = "  " + std::string(preset.name);
    row.append(row.size() < 12 ? 12 - row.size() : 1, ' ');
    row += "version " + std::to_string(preset.version) + ":";
    for (const std::string_view pattern : preset.patterns) row.append(" ").append(pattern);
    text += row + "\n";
  }
  text += "\nwidened\n";
  if (policy.widenings.empty()) text += "  nothing\n";
  for (const Widening& widening : policy.widenings) {
    text += oneRow("  " + widening.key + ": " + shortened(widening.from) + " -> " + shortened(widening.to));
  }
  return text;
}

}  // namespace caisson::policy
