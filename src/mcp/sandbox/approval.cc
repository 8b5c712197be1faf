#include "mcp/sandbox/approval.h"

#include "base/utf8.h"

namespace caisson::mcp {
namespace {

bool deceives(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0xAD || code == 0x61C || code == 0x180E) return true;
  return (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF || (code >= 0xE0000 && code <= 0xE007F);
}

}  // namespace

Consent consentTo(const Call& call, std::string_view key) {
  if (const Json* answer = call.input(key)) {
    const Json* content = findObject(*answer, "content");
    const bool accepted = textAt(*answer, "action") == "accept" && content != nullptr;
    return accepted && textAt(*content, "decision") == "allow" ? Consent::given : Consent::refused;
  }
  return call.can("elicitation") ? Consent::not_asked_yet : Consent::nobody_to_ask;
}

InputRequest askConsent(std::string message) {
  return {"elicitation/create",
          {{"mode", "form"},
           {"message", std::move(message)},
           {"requestedSchema",
            {{"type", "object"},
             {"properties",
              {{"decision",
                {{"type", "string"},
                 {"title", "Decision"},
                 {"description", "Allow this once, or deny it"},
                 {"enum", Json::array({"deny", "allow"})},
                 {"default", "deny"}}}}},
             {"required", Json::array({"decision"})}}}}};
}

bool showable(std::string_view text) {
  while (!text.empty()) {
    const auto next = firstCharacter(text);
    if (!next.valid || deceives(next.code)) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

}  // namespace caisson::mcp
