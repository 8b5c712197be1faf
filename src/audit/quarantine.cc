#include "audit/quarantine.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "audit/chain.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/sha256.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::audit {
namespace {

constexpr const char* kDirectory = "quarantine";
constexpr std::string_view kEnding = ".json";
constexpr std::size_t kMaxKey = 256;
constexpr std::uint64_t kMaxFile = 64 * 1024;

constexpr std::array<std::string_view, 18> kInterpreters = {"sh",  "bash",   "dash", "ash",  "zsh",  "ksh",
                                                            "csh", "fish",   "env",  "perl", "ruby", "node",
                                                            "php", "python", "deno", "bun",  "lua",  "busybox"};

/// The name of a key's file: a hash, since keys are arbitrary text.
std::string fileFor(std::string_view key) { return hex(Sha256().add(key).finish()) + std::string(kEnding); }

Result<void> checkKey(const std::string& key) {
  const auto refuse = [&](std::string_view reason) {
    return fail(plainError(Stage::usage, "quarantine", key, reason, "name a tool, or a whole command after `--`"));
  };
  if (key.empty() || key.size() > kMaxKey) return refuse("quarantine key is empty or longer than 256 bytes");
  if (std::ranges::any_of(key, [](char letter) { return static_cast<unsigned char>(letter) < 0x20; })) {
    return refuse("quarantine key has control characters");
  }
  if (isInterpreterName(key)) return refuse("this is an interpreter: everything that uses it would stop");
  return {};
}

/// Opens the directory of the entries. nullopt if there is none and `make` is false.
Result<std::optional<sys::RootDir>> openStore(bool make) {
  const std::string home = sys::stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "quarantine", "", "neither CAISSON_HOME nor HOME is set", "set CAISSON_HOME"));
  }
  const std::string path = home + "/" + kDirectory;
  if (!make && ::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  auto directory = sys::openStateDirectory(kDirectory);
  if (!directory) return fail(directory.error());
  auto root = sys::RootDir::adopt(std::move(*directory), {.known_as = path});
  if (!root) return fail(root.error());
  return std::optional<sys::RootDir>(std::move(*root));
}

Result<Quarantined> readEntry(const sys::RootDir& root, const std::string& file) {
  const auto text = root.readFile(file, kMaxFile);
  if (!text) return fail(text.error());
  const auto object = JsonValue::parse(*text);
  Quarantined what;
  if (object) {
    const auto member = [&](std::string_view name) { return object->textAt(name).value_or(""); };
    what = {member("key"), member("reason"), member("sandbox"), member("preview"), member("since")};
  }
  // A damaged entry stays in force: its file name identifies the key, and it was not released.
  if (what.key.empty() || fileFor(what.key) != file) {
    what = {.key = "damaged:" + file, .reason = "its entry is damaged: " + root.knownAs() + "/" + file};
  }
  return what;
}

/// The name of a key's file. For `damaged:FILE`, which the list shows for an entry with an unreadable key, it is FILE.
std::string entryFor(const std::string& key) {
  constexpr std::string_view kDamaged = "damaged:";
  constexpr std::size_t kHashLetters = 64;
  const std::string file = key.starts_with(kDamaged) ? key.substr(kDamaged.size()) : "";
  const bool is_entry = file.size() == kHashLetters + kEnding.size() && file.ends_with(kEnding) &&
                        file.find_first_not_of("0123456789abcdef") == kHashLetters;
  return is_entry ? file : fileFor(key);
}

std::string now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return timeText(static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec);
}

}  // namespace

bool isInterpreterName(std::string_view program) {
  std::string_view name = program.substr(program.rfind('/') + 1);
  while (!name.empty() && (name.back() == '.' || (name.back() >= '0' && name.back() <= '9'))) name.remove_suffix(1);
  return std::ranges::find(kInterpreters, name) != kInterpreters.end();
}

std::string commandKey(std::span<const std::string> command) {
  Sha256 sum;
  for (const std::string& word : command) sum.add(word).add(std::uint8_t{0});
  return "sha256:" + hex(sum.finish());
}

std::optional<std::string> keyForQuarantine(std::span<const std::string> command) {
  if (command.empty()) return std::nullopt;
  const bool given_a_program =
      std::ranges::any_of(command.subspan(1), [](const std::string& word) { return !word.starts_with('-'); });
  if (isInterpreterName(command.front()) && !given_a_program) return std::nullopt;
  return commandKey(command);
}

Result<void> quarantine(Quarantined what) {
  if (auto checked = checkKey(what.key); !checked) return checked;
  auto root = openStore(true);
  if (!root) return fail(root.error());
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("key").string(what.key).key("reason").string(what.reason);
  json.key("sandbox").string(what.sandbox).key("preview").string(what.preview);
  json.key("since").string(what.since.empty() ? now() : what.since).end();
  const std::string text = json.text() + "\n";
  if (text.size() > kMaxFile) {
    return fail(plainError(Stage::usage, "quarantine", what.key, "the reason is too long", "shorten it"));
  }
  return (**root).writeFileAtomic(fileFor(what.key), text, 0600);
}

Result<bool> release(const std::string& key) {
  auto root = openStore(false);
  if (!root) return fail(root.error());
  if (!*root) return false;
  const std::string file = entryFor(key);
  if (const auto there = (**root).stat(file); !there) {
    if (there.error().sys_errno == ENOENT) return false;
    return fail(there.error());
  }
  if (auto removed = (**root).remove(file); !removed) return fail(removed.error());
  return true;
}

Result<std::optional<Quarantined>> findQuarantined(const std::string& key) {
  auto root = openStore(false);
  if (!root) return fail(root.error());
  if (!*root) return std::nullopt;
  auto what = readEntry(**root, entryFor(key));
  if (!what && what.error().sys_errno == ENOENT) return std::nullopt;
  if (!what) return fail(what.error());
  return std::optional<Quarantined>(std::move(*what));
}

Result<std::vector<Quarantined>> quarantined() {
  std::vector<Quarantined> all;
  auto root = openStore(false);
  if (!root) return fail(root.error());
  if (!*root) return all;
  const auto entries = (**root).list("");
  if (!entries) return fail(entries.error());
  for (const auto& entry : *entries) {
    if (!entry.name.ends_with(kEnding)) continue;
    auto what = readEntry(**root, entry.name);
    if (!what && what.error().sys_errno == ENOENT) continue;  // released meanwhile
    if (!what) return fail(what.error());
    all.push_back(std::move(*what));
  }
  std::ranges::sort(all, {}, &Quarantined::key);
  return all;
}

Result<std::optional<Error>> refusalFor(std::initializer_list<std::string_view> keys) {
  for (const std::string_view view : keys) {
    if (view.empty()) continue;
    const std::string key(view);
    const auto found = findQuarantined(key);
    if (!found) return fail(found.error());
    if (!*found) continue;
    const Quarantined& what = **found;
    std::string reason = "in quarantine";
    if (!what.since.empty()) reason += " since " + what.since;
    if (!what.reason.empty()) reason += ": " + what.reason;
    return std::optional<Error>(plainError(Stage::policy, "run", what.preview.empty() ? key : what.preview, reason,
                                           "if you trust it again, on a terminal: caisson tool release " + what.key));
  }
  return std::nullopt;
}

}  // namespace caisson::audit
