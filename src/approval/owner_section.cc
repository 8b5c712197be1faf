#include "approval/owner_section.h"

#include <unistd.h>

#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/decode/validate.h"
#include "policy/units.h"
#include "sys/machine.h"
#include "sys/state_home.h"

namespace caisson::approval {

using policy::Node;

Error configError(std::string object, std::string_view reason, std::string_view hint) {
  return plainError(Stage::policy, "configuration", object, reason, hint);
}

void Section::size(std::string_view key, std::optional<std::uint64_t>& place) {
  quantity(key, place, policy::parseSize, "a size such as \"4G\"");
}

void Section::count(std::string_view key, std::optional<std::uint64_t>& place) {
  quantity(key, place, nullptr, "a whole number above 0");
}

void Section::text(std::string_view key, std::optional<std::string>& place) {
  const Node* node = take(key);
  if (node == nullptr) return;
  if (node->type != Node::Type::text) return refuse(key, *node, "expected a string");
  place = node->text;
}

void Section::paths(std::string_view key, std::vector<std::string>& place) {
  const Node* node = take(key);
  if (node == nullptr) return;
  if (node->type != Node::Type::list) return refuse(key, *node, "expected a list of absolute paths");
  for (const Node& item : node->items) {
    const auto expanded = policy::expandHome(item.text);
    if (!expanded) {
      return refuse(key, item, "expected " + expanded.error().expected + " (" + expanded.error().hint + ")");
    }
    if (item.type != Node::Type::text || policy::findFlaw(policy::Syntax::shown_path, *expanded)) {
      return refuse(key, item, "expected an absolute path outside /proc, /sys and /dev");
    }
    place.push_back(policy::normalPath(*expanded));
    // The home directory of the user database too: HOME is whatever the caller says.
    const std::string listed = item.text.starts_with('~') ? sys::homeFromPasswd(::geteuid()) : "";
    if (listed.size() > 1 && listed.starts_with('/')) {
      const std::string path = policy::normalPath(listed + item.text.substr(1));
      if (path != place.back()) place.push_back(path);
    }
  }
}

void Section::hosts(std::string_view key, std::vector<std::string>& place) {
  const Node* node = take(key);
  if (node == nullptr) return;
  if (node->type != Node::Type::list) return refuse(key, *node, "expected a list of host names and addresses");
  for (const Node& item : node->items) {
    if (item.type != Node::Type::text || policy::findFlaw(policy::Syntax::single_host, item.text)) {
      return refuse(key, item, "expected a host name or an address");
    }
    place.push_back(item.text);
  }
}

void Section::texts(std::string_view key, std::vector<std::string>& place) {
  const Node* node = take(key);
  if (node == nullptr) return;
  if (node->type != Node::Type::list) return refuse(key, *node, "expected a list of strings");
  for (const Node& item : node->items) {
    if (item.type != Node::Type::text) return refuse(key, item, "expected a string");
    place.push_back(item.text);
  }
}

void Section::names(std::string_view key, std::string_view expected, bool (*known)(const std::string&),
                    std::optional<std::vector<std::string>>& place) {
  std::vector<std::string> listed;
  const Node* node = table_.find(key);
  texts(key, listed);
  if (node == nullptr || error_) return;
  if (!std::ranges::all_of(listed, known)) return refuse(key, *node, expected);
  place = std::move(listed);
}

void Section::command(std::string_view key, std::vector<std::string>& place) {
  const Node* node = take(key);
  if (node == nullptr) return;
  constexpr std::string_view kExpected = "expected a list: the absolute path of a program and its arguments";
  if (node->type != Node::Type::list || node->items.empty()) return refuse(key, *node, kExpected);
  for (const Node& item : node->items) {
    if (item.type != Node::Type::text || item.text.find('\0') != std::string::npos) {
      return refuse(key, item, kExpected);
    }
    place.push_back(item.text);
  }
  auto program = policy::expandHome(place.front());
  if (!program || !program->starts_with('/')) return refuse(key, *node, kExpected);
  place.front() = std::move(*program);
}

void Section::url(std::string_view key, std::string& place) {
  const Node* node = take(key);
  if (node == nullptr) return;
  const bool http = node->type == Node::Type::text &&
                    (node->text.starts_with("http://") || node->text.starts_with("https://")) &&
                    std::ranges::all_of(node->text, [](char letter) { return letter > 0x20 && letter < 0x7F; });
  if (!http) return refuse(key, *node, "expected an address that begins with http:// or https://");
  place = node->text;
}

void Section::pairs(std::string_view key, std::string_view expected,
                    const std::function<bool(const std::string&, const std::string&)>& add) {
  const Node* node = take(key);
  if (node == nullptr) return;
  if (node->type != Node::Type::list) return refuse(key, *node, expected);
  for (const Node& item : node->items) {
    const std::size_t equals = item.text.find('=');
    const bool pair = item.type == Node::Type::text && equals != std::string::npos && equals > 0;
    if (!pair || !add(item.text.substr(0, equals), item.text.substr(equals + 1))) return refuse(key, item, expected);
  }
}

Result<void> Section::finish() {
  for (const auto& [key, node] : table_.members) {
    if (std::ranges::find(known_, key) == known_.end()) refuse(key, node, "unknown key");
  }
  if (error_) return fail(*error_);
  return {};
}

const Node* Section::take(std::string_view key) {
  known_.emplace_back(key);
  return table_.find(key);
}

void Section::refuse(std::string_view key, const Node& node, std::string_view reason) {
  if (error_) return;
  std::string shown = name_ + "." + std::string(key.substr(0, 80));
  for (char& letter : shown) letter = letter > 0x20 && letter < 0x7F ? letter : '?';
  error_ = configError(
      policy::place(document_.name, node.line, shown), reason,
      "known are ceilings (cpus, memory, swap, processes, open_files, wall_seconds, output), "
      "defaults.profile, filesystem.always_denied, network.private_hosts, images (quota, mirrors, plain_http, "
      "signatures), runtimes (allowed, paths) and alerts (command, webhook)");
}

void Section::quantity(std::string_view key, std::optional<std::uint64_t>& place,
                       std::expected<std::uint64_t, std::string> (*parse)(std::string_view),
                       std::string_view expected) {
  const Node* node = take(key);
  if (node == nullptr) return;
  if (node->type == Node::Type::integer && node->integer > 0) {
    place = static_cast<std::uint64_t>(node->integer);
    return;
  }
  if (parse != nullptr && node->type == Node::Type::text) {
    if (const auto value = parse(node->text); value && *value > 0) {
      place = *value;
      return;
    }
  }
  refuse(key, *node, "expected " + std::string(expected));
}

void Section::number(std::string_view key, std::optional<double>& place, bool duration) {
  const Node* node = take(key);
  if (node == nullptr) return;
  double value = 0;
  if (node->type == Node::Type::integer) value = static_cast<double>(node->integer);
  if (node->type == Node::Type::floating) value = node->floating;
  if (duration && node->type == Node::Type::text) value = policy::parseSeconds(node->text).value_or(0);
  if (!(value > 0) || value > 1e9)
    return refuse(key, *node, duration ? "expected a time such as \"20m\"" : "expected a number above 0");
  place = value;
}

}  // namespace caisson::approval
