#include "server/audit_access.h"

#include "base/json_document.h"

namespace caisson::server {

bool AuditAccess::mayRead(const audit::Entry& entry) {
  if (caller_.owner) return true;
  const bool request = entry.event == audit::name(audit::EventType::http_request) ||
                       entry.event == audit::name(audit::EventType::http_refused);
  if (request && caller_.may(service::Scope::admin)) {
    const auto data = parseJson(entry.data);
    const std::string by = data ? textAt(*data, "caller_id").value_or("") : std::string(service::kOwnerId);
    // Requests without a caller are refusals, or previews, which belong to a sandbox.
    if (!by.empty() || entry.sandbox.empty()) return by != service::kOwnerId;
  }
  return !entry.sandbox.empty() && sees(entry.sandbox);
}

bool AuditAccess::sees(const std::string& sandbox) {
  const auto [place, is_new] = known_.try_emplace(sandbox, false);
  if (is_new) place->second = sandboxes_.find(caller_, sandbox).has_value();
  return place->second;
}

}  // namespace caisson::server
