// Formats values for display. Texts with odd blanks are quoted as paths are, since they could look like another
// setting, and so are elements of lists that could look like two.

#include "base/path_text.h"
#include "policy/fields.h"
#include "policy/rules/credential.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

std::string shownText(const std::string& text) { return hasOddBlanks(text) ? displayedPath(text) : text; }

/// Of a list, whose separator and brackets the element could hold.
std::string shownElement(const std::string& text) { return hasListMarks(text) ? displayedPath(text) : shownText(text); }

template <class Range, class Print>
std::string joined(const Range& range, Print print) {
  std::string text = "[";
  for (const auto& element : range) {
    if (text.size() > 1) text += ", ";
    text += print(element);
  }
  return text + "]";
}

struct Display {
  const Field& field;

  std::string operator()(std::monostate) const { return "unset"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::uint64_t value) const {
    return field.kind == Kind::size ? formatSize(value) : std::to_string(value);
  }
  std::string operator()(double value) const {
    if (field.syntax == Syntax::cpu_count && value == kAllCpus) return "all";
    return field.kind == Kind::seconds ? formatSeconds(value) : formatNumber(value);
  }
  std::string operator()(const std::string& value) const { return value.empty() ? "\"\"" : shownText(value); }
  std::string operator()(const std::vector<std::string>& value) const {
    return joined(value, [](const std::string& element) { return shownElement(element); });
  }
  std::string operator()(const std::vector<std::uint64_t>& value) const {
    return joined(value, [](std::uint64_t element) { return std::to_string(element); });
  }
  std::string operator()(const std::map<std::string, std::string>& value) const {
    return joined(value, [](const auto& element) { return shownElement(element.first + "=" + element.second); });
  }
  std::string operator()(const std::vector<Credential>& value) const {
    return joined(value, [](const Credential& credential) { return describe(credential); });
  }
  std::string operator()(const std::vector<Tmpfs>& value) const {
    return joined(value, [](const Tmpfs& mount) {
      return shownElement(mount.path) + " (" + formatSize(mount.size) + ", " + std::to_string(mount.inodes) +
             " inodes" + (mount.exec ? ", exec" : "") +
             (mount.access == TmpfsAccess::rw ? "" : ", " + std::string(name(mount.access))) +
             (mount.store == DirectoryStore::memory ? "" : ", " + std::string(name(mount.store))) +
             (mount.cache.empty() ? "" : ", cache of " + mount.cache) + ")";
    });
  }
};

}  // namespace

std::string display(const Field& field, const Value& value) { return std::visit(Display{field}, value); }

}  // namespace caisson::policy
