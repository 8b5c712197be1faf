#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/shell_quote.h"
#include "cli/agent/hook.h"
#include "cli/options.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kAboutShell =
    "Shell commands run in a caisson sandbox on a copy-on-write view of this project, without network unless the user "
    "allowed hosts. Files that they create or change are visible to later shell commands; they reach the project "
    "itself "
    "only when the user reviews them (`caisson agent diff`) and commits them (`caisson agent commit`). Your file tools "
    "work on the project itself: use them for edits, and shell commands to build, test and read what commands wrote.";

Error notACall(std::string_view reason) { return usageError("agent hook", reason, "it is called by an agent"); }

/// Letters that a key of `agent exec --remember` may have.
std::string keyOf(std::string_view session) {
  std::string key;
  for (const char letter : session.substr(0, 64))
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-') key += letter;
  return key;
}

/// The tools whose command a POSIX shell reads. The quotes that we add mean something else to another shell: in
/// PowerShell a quote in the command would end the argument, and the rest would run outside the sandbox.
bool usesPosixShell(std::string_view host, std::string_view tool) {
  if (host == "gemini") return tool == "run_shell_command";
  return tool == "Bash" || (host == "claude-code" && tool == "Monitor");
}

std::string wrapped(const JsonValue& call, const std::string& command, const std::string& project,
                    const HookOptions& options) {
  std::string line = shellQuoted(options.program) + " agent exec --project=" + shellQuoted(project);
  // Claude Code expects `cd` to last; the others name the directory with each command.
  const std::string key = keyOf(call.textAt("session_id").value_or(""));
  if (options.host == "claude-code" && !key.empty()) line += " --remember=" + key;
  for (const std::string& flag : options.flags) line += " " + shellQuoted(flag);
  return line + " -- " + shellQuoted(command);
}

}  // namespace

Result<HookCall> readHookCall(std::string_view input) {
  const auto call = JsonValue::parse(input);
  if (!call || !call->isObject()) return fail(notACall("standard input is not a JSON object"));
  const auto event = call->textAt("hook_event_name");
  if (!event) return fail(notACall("there is no hook_event_name"));
  return HookCall{.event = *event, .project = call->textAt("cwd").value_or("")};
}

Result<std::string> wrapShellCall(std::string_view input, const std::string& project, const HookOptions& options) {
  const auto call = JsonValue::parse(input);
  if (!call) return fail(notACall("standard input is not JSON"));
  const std::string tool_name = call->textAt("tool_name").value_or("");
  if (!usesPosixShell(options.host, tool_name))
    return fail(
        usageError("agent hook " + options.host,
                   "the tool \"" + tool_name + "\" is not known to use a POSIX shell, so its command is not run",
                   "use the agent's shell tool for sh or bash"));
  const auto tool = call->find("tool_input");
  const auto command = tool ? tool->textAt("command") : std::nullopt;
  if (!command) return fail(notACall("the tool call has no command, so it cannot be run in the sandbox"));
  const std::string line = wrapped(*call, *command, project, options);
  std::string changed;  // the other members, such as a time limit, as they are
  for (const auto& [name, value] : tool->members()) {
    JsonWriter key;
    key.string(name);
    JsonWriter text;
    text.string(line);
    changed += (changed.empty() ? "" : ",") + key.text() + ":" + (name == "command" ? text.text() : value.written());
  }
  const std::string event = call->textAt("hook_event_name").value_or("");
  if (options.host == "gemini") {
    return R"({"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{)" + changed + "}}}";
  }
  // Codex takes a changed input only with this decision; its own approvals come after it.
  const bool allow = options.auto_allow || options.host == "codex";
  return std::string(R"({"hookSpecificOutput":{"hookEventName":"PreToolUse",)") +
         (allow ? R"("permissionDecision":"allow",)" : "") + R"("updatedInput":{)" + changed + "}}}";
}

std::string startAnswer(std::string_view event) {
  JsonWriter json;
  json.beginObject().key("hookSpecificOutput").beginObject().key("hookEventName").string(event);
  json.key("additionalContext").string(kAboutShell).end().end();
  return json.text();
}

std::string endAnswer(std::size_t changes) {
  JsonWriter json;
  json.beginObject().key("systemMessage");
  json.string("caisson: " + std::to_string(changes) + (changes == 1 ? " change" : " changes") +
              " of shell commands to review: caisson agent diff, then caisson agent commit");
  json.end();
  return json.text();
}

}  // namespace caisson::cli
