#include "mcp/hook_install.h"

#include "mcp/kept_json.h"

namespace caisson::mcp {
namespace {

/// A shell command that succeeds inside a sandbox of level full: its /proc has masks, which only root could mount
/// elsewhere. A variable could be set by a file of the project, which would switch the hook off.
constexpr std::string_view kInside =
    "inside() { while read -r line; do case $line in *\" /.mask-file//deleted /proc/\"*) return 0;; esac; done; "
    "return 1; }; inside 2>/dev/null </proc/self/mountinfo";

Error badFile(const HookHost& host, std::string reason) {
  return {.stage = Stage::usage,
          .call = "agent install",
          .object = std::string(host.file),
          .reason = std::move(reason),
          .hint = "correct the file, or remove it"};
}

/// Whether caisson wrote this hook: its command calls `caisson agent hook`.
bool isOurs(const HookHost& host, const OrderedJson& hook) {
  if (!hook.is_object() || !hook.contains("command") || !hook["command"].is_string()) return false;
  const auto& command = hook["command"].get_ref<const std::string&>();
  return command.find("caisson") != std::string::npos &&
         command.find(" agent hook " + std::string(host.hook)) != std::string::npos;
}

Result<OrderedJson> parsed(const HookHost& host, std::string_view text) {
  auto read = readKept(text);
  if (!read) return std::unexpected(badFile(host, std::move(read.error())));
  OrderedJson& whole = *read;
  if (!whole.contains("hooks")) return std::move(whole);
  if (!whole["hooks"].is_object()) return std::unexpected(badFile(host, "its `hooks` is not an object"));
  for (const std::string_view event : {host.before, host.start, host.end}) {
    const std::string key(event);
    if (!whole["hooks"].contains(key)) continue;
    if (!whole["hooks"][key].is_array()) return std::unexpected(badFile(host, "its `hooks." + key + "` is not a list"));
  }
  return std::move(whole);
}

/// Removes our hooks from the groups of one event, and groups that hold nothing else.
void removeFrom(const HookHost& host, OrderedJson& groups) {
  OrderedJson kept = OrderedJson::array();
  for (OrderedJson& group : groups) {
    if (!group.is_object() || !group.contains("hooks") || !group["hooks"].is_array()) {
      kept.push_back(std::move(group));
      continue;
    }
    OrderedJson others = OrderedJson::array();
    for (OrderedJson& hook : group["hooks"])
      if (!isOurs(host, hook)) others.push_back(std::move(hook));
    if (others.empty() && !group["hooks"].empty()) continue;
    group["hooks"] = std::move(others);
    kept.push_back(std::move(group));
  }
  groups = std::move(kept);
}

/// Removes our hooks from all events, and what is empty afterwards.
void removeAll(const HookHost& host, OrderedJson& whole) {
  if (!whole.contains("hooks")) return;
  OrderedJson& hooks = whole["hooks"];
  for (const std::string_view event : {host.before, host.start, host.end}) {
    const std::string key(event);
    if (!hooks.contains(key)) continue;
    const bool was_empty = hooks[key].empty();
    removeFrom(host, hooks[key]);
    if (hooks[key].empty() && !was_empty) hooks.erase(key);
  }
  if (hooks.empty()) whole.erase("hooks");
}

void addHook(const HookHost& host, OrderedJson& hooks, std::string_view event, std::string_view matcher,
             const std::string& command) {
  OrderedJson hook = OrderedJson::object();
  if (host.hook == "gemini") hook["name"] = "caisson";
  hook["type"] = "command";
  hook["command"] = command;
  hook["timeout"] = host.timeout;
  OrderedJson group = OrderedJson::object();
  if (!matcher.empty()) group["matcher"] = matcher;
  group["hooks"] = OrderedJson::array({std::move(hook)});
  const std::string key(event);
  if (!hooks.contains(key)) hooks[key] = OrderedJson::array();
  hooks[key].push_back(std::move(group));
}

Result<std::string> written(std::string_view before, const OrderedJson& earlier, const OrderedJson& whole) {
  if (whole == earlier) return std::string(before);
  return whole.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

const HookHost* findHookHost(std::string_view name) {
  for (const HookHost& host : kHookHosts)
    if (host.name == name) return &host;
  return nullptr;
}

bool disablesHooks(std::string_view text) {
  // Claude Code accepts comments. A text that only it can read is not known to leave the hooks on.
  const OrderedJson whole = OrderedJson::parse(text.begin(), text.end(), nullptr, false, true);
  if (whole.is_discarded()) return text.find("disableAllHooks") != std::string_view::npos;
  return whole.is_object() && whole.contains("disableAllHooks") && whole["disableAllHooks"] == OrderedJson(true);
}

Result<std::string> withHooks(const HookHost& host, std::string_view before, const std::string& call) {
  auto whole = parsed(host, before);
  if (!whole) return std::unexpected(whole.error());
  const OrderedJson earlier = *whole;
  removeAll(host, *whole);
  if (!whole->contains("hooks")) (*whole)["hooks"] = OrderedJson::object();
  OrderedJson& hooks = (*whole)["hooks"];
  // Agents run the command as it was if a hook fails, also if caisson is missing; only status 2 blocks it. At the start
  // and the end nothing is to be blocked. An agent that is in a sandbox as a whole needs no second one.
  const std::string unless_inside = std::string(kInside) + " || " + call;
  addHook(host, hooks, host.before, host.matcher, unless_inside + " || exit 2");
  addHook(host, hooks, host.start, "", unless_inside + " || true");
  addHook(host, hooks, host.end, "", unless_inside + " || true");
  return written(before, earlier, *whole);
}

Result<std::string> withoutHooks(const HookHost& host, std::string_view before) {
  auto whole = parsed(host, before);
  if (!whole) return std::unexpected(whole.error());
  const OrderedJson earlier = *whole;
  removeAll(host, *whole);
  return written(before, earlier, *whole);
}

}  // namespace caisson::mcp
