#include "policy/import/builder.h"

#include <algorithm>

#include "base/error.h"
#include "policy/decode/decode.h"
#include "policy/decode/syntax.h"
#include "policy/decode/validate.h"
#include "policy/decode/widening.h"
#include "policy/profiles/profiles.h"
#include "policy/rules/denied_names.h"
#include "policy/rules/name_pattern.h"

namespace caisson::policy {

bool weakensSecurity(std::string_view option) {
  const std::size_t sign = std::min(option.find_first_of("=:"), option.size());
  const std::string_view name = option.substr(0, sign);
  const std::string_view value = option.substr(std::min(sign + 1, option.size()));
  if (option.find("unconfined") != std::string_view::npos || value == "disable" || name == "unmask") return true;
  if (name == "writable-cgroups") return value != "false";
  return name == "no-new-privileges" && (value == "false" || value == "0");
}

bool isRootUser(std::string_view user) {
  const std::string_view name = user.substr(0, user.find(':'));
  return name == "root" || (!name.empty() && name.find_first_not_of('0') == std::string_view::npos);
}

std::string hostPattern(const std::string& host) { return host.starts_with("*.") ? host.substr(1) : host; }

ImportBuilder::ImportBuilder(const Document& document, std::string_view shape, std::string_view profile,
                             std::string_view workspace)
    : document_(document), reader_(document), profile_(profile), workspace_(workspace) {
  result_.shape = shape;
  result_.policy = *builtin(profile);
  result_.policy.name = "imported-" + std::string(shape);
  result_.policy.description = "Imported from " + std::string(shape) + " configuration.";
}

void ImportBuilder::note(Kind kind, std::string_view key, std::string text) {
  result_.notes.push_back({kind, std::string(key), std::move(text)});
}

void ImportBuilder::widen(std::string_view from, std::string_view ours, std::string text) {
  markReported(from, ours);
  note(Kind::widening, from, std::move(text));
}

void ImportBuilder::lossy(std::string_view key, std::string text) {
  if (reader_.take(key) != nullptr) note(Kind::lossy, key, std::move(text));
}

void ImportBuilder::refuse(std::string_view from, std::string reason, std::string hint) {
  if (failure_) return;
  failure_ = plainError(Stage::policy, "import", document_.name + ": " + std::string(from), std::move(reason),
                        std::move(hint));
}

Policy& ImportBuilder::policy() {
  while (!additions_.empty()) flush(std::string(additions_.begin()->first));
  return result_.policy;
}

void ImportBuilder::flush(std::string_view key) {
  const auto found = additions_.find(key);
  if (found == additions_.end()) return;
  const Additions added = std::move(found->second);
  additions_.erase(found);
  if (auto done = appendUnrecorded(result_.policy, key, added.values); !done)
    refuse(added.from, done.error().reason, done.error().hint);
}

void ImportBuilder::set(std::string_view from, std::string_view key, const std::string& value) {
  flush(key);
  origins_.emplace(key, from);
  if (auto done = setUnrecorded(result_.policy, key, value); !done)
    refuse(from, done.error().reason, done.error().hint);
}

void ImportBuilder::append(std::string_view from, std::string_view key, const std::string& value) {
  origins_.emplace(key, from);
  if (auto good = checkEntry(key, value); !good) return refuse(from, good.error().reason, good.error().hint);
  Additions& added = additions_[std::string(key)];
  if (added.values.empty()) added.from = from;
  added.values.push_back(value);
}

void ImportBuilder::setList(std::string_view from, std::string_view key, const Texts& values) {
  set(from, key, "[]");
  for (const std::string& value : values) append(from, key, value);
}

void ImportBuilder::takeMemory(std::string_view key) {
  if (const auto bytes = reader_.size(key)) set(key, "resources.memory", std::to_string(*bytes));
}

void ImportBuilder::takeHosts(std::string_view key, const Texts& hosts) {
  for (const std::string& host : hosts) {
    const std::string pattern = hostPattern(host);
    append(key, "network.allowed_hosts", pattern);
    if (pattern != host) note(Kind::widening, key, host + " also allows " + pattern.substr(1) + " itself");
    const bool private_name = host.ends_with(".local") || host.ends_with(".internal");
    if (private_name && host.starts_with('*')) {
      note(Kind::lossy, key, host + " may have private addresses: name each such host in network.private_hosts");
    } else if (private_name) {
      append(key, "network.private_hosts", host);
      widen(key, "network.private_hosts",
            host + " is a name inside your network: an exception from what is always blocked");
    }
  }
}

void ImportBuilder::resizeTmpfs(std::string_view from, std::string_view path, std::uint64_t bytes) {
  for (Tmpfs& mount : result_.policy.filesystem.tmpfs) {
    if (mount.path != path) continue;
    mount.size = bytes;
    origins_.emplace("filesystem.tmpfs", from);
    return;
  }
  note(Kind::lossy, from, std::string(path) + " is not a separate directory here");
}

void ImportBuilder::noteWidenings() {
  for (const Widening& widening : wideningsOver(*builtin(profile_), result_.policy)) {
    if (widening.from == widening.to) continue;  // it follows from another key
    const std::string text = widening.key + ": " + widening.from + " becomes " + widening.to;
    bool known = false;
    for (const KeyPair& pair : origins_) {
      if (pair.first != widening.key) continue;
      known = true;
      if (!explained_.contains(pair)) note(Kind::widening, pair.second, text);
    }
    if (!known) note(Kind::widening, widening.key, text);
  }
}

Result<Imported> ImportBuilder::finish() {
  if (auto finished = reader_.finish(); !finished) return fail(finished.error());
  policy();
  if (failure_) return fail(*failure_);
  noteWidenings();
  result_.policy.widenings.clear();
  if (auto checked = validate(result_.policy); !checked) return fail(checked.error());
  return std::move(result_);
}

std::string withoutAllBelow(std::string path) {
  const auto cut = [&](std::string_view suffix) {
    if (!path.ends_with(suffix)) return false;
    path.resize(path.size() - suffix.size());
    if (path.empty()) path = suffix.starts_with('/') ? "/" : ".";
    return true;
  };
  while (true) {
    if (path == "*" || path == "**") return ".";
    if (path == "/" || (!cut("/") && !cut("/*") && !cut("/**"))) return path;
  }
}

bool hasWildcards(std::string_view path) { return path.find_first_of("*?[") != std::string_view::npos; }

WorkspacePart partOfWorkspace(const std::string& path, const std::string& workspace) {
  WorkspacePart part;
  const DeniedEntry entry(normalPath(path));
  for (const std::string& top : {std::string("/workspace"), workspace}) {
    if (top.empty()) continue;
    DeniedEntry::Positions positions = entry.start();
    part.whole = part.whole || entry.denies(positions);
    for (const std::string_view name : splitParts(top, '/')) {
      positions = entry.after(positions, name);
      part.whole = part.whole || entry.denies(positions);
    }
    for (std::string& rest : entry.rests(positions)) {
      if (!rest.empty() && std::ranges::find(part.below, rest) == part.below.end())
        part.below.push_back(std::move(rest));
    }
  }
  return part;
}

bool isLongerThanAPath(const std::string& path) {
  constexpr std::size_t kPathMax = 4096;
  return path.size() >= kPathMax;
}

bool concerns(const DeniedEntry& entry, const std::string& directory) {
  DeniedEntry::Positions positions = entry.start();
  for (const std::string_view name : splitParts(directory, '/')) {
    if (entry.denies(positions)) return true;
    positions = entry.after(positions, name);
  }
  return entry.denies(positions) || entry.leadsOn(positions);
}

}  // namespace caisson::policy
