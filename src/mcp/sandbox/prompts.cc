#include "mcp/sandbox/prompts.h"

#include <algorithm>
#include <string_view>

#include "mcp/protocol/results.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

struct Prompt {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  std::string_view argument;  ///< the only one
  std::string_view argument_description;
  bool required;
  std::string_view before, after;  ///< around the argument's value
};

constexpr Prompt kPrompts[] = {
    {"run-project-in-sandbox", "Run the project safely", "Build and test the project in a sandbox.", "goal",
     "What to find out or to do", false, "Work in a sandbox for this: ",
     "\n\nCreate one with sandbox_create (the project is at /workspace there), find out how the project is built and "
     "tested, do it with sandbox_execute, and report what you ran and what came out. Nothing you do there changes the "
     "real files. Destroy the sandbox at the end."},
    {"try-untrusted-code", "Try untrusted code", "Look at, then run, code from elsewhere.", "what",
     "The code, or where in the project it is", true, "Find out what this code does, without trusting it: ",
     "\n\nCreate a sandbox with sandbox_create, read the code before you run it, run it there with a short timeout_ms, "
     "and look at the denials in the results and in sandbox_info: they show what it tried that it may not do. Report "
     "what it does and whether anything was suspicious."},
    {"diagnose-denial", "Why was this denied?", "Explain what a sandbox refused.", "sandbox_id",
     "The sandbox in which something failed", true, "Something failed in the sandbox ",
     ".\n\nCall sandbox_info for it, look at the denials and the recent commands, explain in plain words which rule "
     "refused what, and say what the user could change to allow it, if that is wise at all."},
};

bool isOffered(const OperatorBounds& bounds, const Prompt& prompt) {
  return std::ranges::none_of(allTools(), [&](const Tool* tool) {
    const bool named = prompt.before.find(tool->name) != std::string_view::npos ||
                       prompt.after.find(tool->name) != std::string_view::npos;
    return named && !bounds.offers(*tool);
  });
}

}  // namespace

Json listPrompts(const OperatorBounds& bounds) {
  Json list = Json::array();
  for (const Prompt& prompt : kPrompts) {
    if (!isOffered(bounds, prompt)) continue;
    list.push_back({{"name", prompt.name},
                    {"title", prompt.title},
                    {"description", prompt.description},
                    {"arguments", Json::array({{{"name", prompt.argument},
                                                {"description", prompt.argument_description},
                                                {"required", prompt.required}}})}});
  }
  return list;
}

Outcome getPrompt(const OperatorBounds& bounds, const Call& call) {
  const std::string name = textAt(call.params, "name").value_or("");
  for (const Prompt& prompt : kPrompts) {
    if (prompt.name != name || !isOffered(bounds, prompt)) continue;
    const Json* arguments = findObject(call.params, "arguments");
    const auto value = arguments == nullptr ? std::nullopt : textAt(*arguments, prompt.argument);
    if (prompt.required && !value)
      return RpcError{code::kInvalidParams, "the argument `" + std::string(prompt.argument) + "` is missing", {}};
    const std::string text =
        std::string(prompt.before) + value.value_or("build and test the project.") + std::string(prompt.after);
    return Json{{"description", prompt.description},
                {"messages", Json::array({{{"role", "user"}, {"content", textContent(text)}}})}};
  }
  return RpcError{code::kInvalidParams, "unknown prompt: " + name, {}};
}

}  // namespace caisson::mcp
