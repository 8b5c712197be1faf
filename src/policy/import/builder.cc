#include "policy/import/builder.h"

#include <algorithm>

#include "base/error.h"
#include "policy/decode/decode.h"
#include "policy/decode/syntax.h"
#include "policy/decode/validate.h"
#include "policy/decode/widening.h"
#include "policy/profiles/profiles.h"
#include "policy/rules/secret_files.h"

namespace caisson::policy {

std::string hostPattern(const std::string& host) { return host.starts_with("*.") ? host.substr(1) : host; }

ImportBuilder::ImportBuilder(const Document& document, std::string_view shape, std::string_view profile)
    : document_(document), reader_(document), profile_(profile) {
  result_.shape = shape;
  result_.policy = *builtin(profile);
  result_.policy.name = "imported-" + std::string(shape);
  result_.policy.description = "Imported from " + std::string(shape) + " configuration.";
}

void ImportBuilder::note(Kind kind, std::string_view key, std::string text) {
  result_.notes.push_back({kind, std::string(key), std::move(text)});
}

void ImportBuilder::lossy(std::string_view key, std::string text) {
  if (reader_.take(key) != nullptr) note(Kind::lossy, key, std::move(text));
}

void ImportBuilder::refuse(std::string_view from, std::string reason, std::string hint) {
  if (failure_) return;
  failure_ = plainError(Stage::policy, "import", document_.name + ": " + std::string(from), std::move(reason),
                        std::move(hint));
}

void ImportBuilder::set(std::string_view from, std::string_view key, const std::string& value) {
  origins_.try_emplace(std::string(key), from);
  if (auto done = setKey(result_.policy, key, value); !done) refuse(from, done.error().reason, done.error().hint);
}

void ImportBuilder::append(std::string_view from, std::string_view key, const std::string& value) {
  origins_.try_emplace(std::string(key), from);
  if (auto done = appendKey(result_.policy, key, value); !done) refuse(from, done.error().reason, done.error().hint);
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
      note(Kind::widening, key, host + " is a name inside your network: an exception from what is always blocked");
    }
  }
}

void ImportBuilder::resizeTmpfs(std::string_view from, std::string_view path, std::uint64_t bytes) {
  for (Tmpfs& mount : result_.policy.filesystem.tmpfs) {
    if (mount.path != path) continue;
    mount.size = bytes;
    return;
  }
  note(Kind::lossy, from, std::string(path) + " is not a separate directory here");
}

void ImportBuilder::noteWidenings() {
  for (const Widening& widening : wideningsOver(*builtin(profile_), result_.policy)) {
    if (widening.from == widening.to) continue;  // it follows from another key
    const auto origin = origins_.find(widening.key);
    std::string_view from = origin == origins_.end() ? std::string_view(widening.key) : origin->second;
    if (from.ends_with('.')) from.remove_suffix(1);
    const bool noted = std::ranges::any_of(result_.notes, [&](const ImportNote& note) {
      return note.kind == Kind::widening && (note.key == from || note.key == widening.key);
    });
    if (!noted) note(Kind::widening, from, widening.key + ": " + widening.from + " becomes " + widening.to);
  }
}

Result<Imported> ImportBuilder::finish() {
  if (auto finished = reader_.finish(); !finished) return fail(finished.error());
  if (failure_) return fail(*failure_);
  noteWidenings();
  result_.policy.widenings.clear();
  if (auto checked = validate(result_.policy); !checked) return fail(checked.error());
  return std::move(result_);
}

ShownPath judgeShownPath(const std::string& path, bool writable) {
  const std::string name = normalPath(path);
  const std::string home = expandHome("~").value_or("");
  if (name == "/") return {"it is the whole host"};
  if (!home.empty() && isWithin(home, name)) return {"it holds a home directory"};
  if (findFlaw(Syntax::shown_path, name)) return {"it cannot be shown in a sandbox"};
  for (const SecretPattern& secret : homeSecrets()) {
    const std::string part = "/" + std::string(secret.pattern) + "/";
    const bool of_any_home = part.starts_with("/.") && (name + "/").find(part) != std::string::npos;
    if (of_any_home || (!home.empty() && isWithin(home + "/" + std::string(secret.pattern), name)))
      return {"it usually holds keys or passwords"};
  }
  if (!writable || home.empty() || !isWithin(name, home)) return {};
  const std::string_view rest = std::string_view(name).substr(home.size() + 1);
  return {.why_not = {}, .only_readable = rest.starts_with('.') || isWithin(name, home + "/bin")};
}

}  // namespace caisson::policy
