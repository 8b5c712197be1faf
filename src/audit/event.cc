#include "audit/event.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "base/json_writer.h"

namespace caisson::audit {
namespace {

constexpr std::array<std::string_view, 4> kSeverities = {"INFO", "WARN", "ERROR", "CRITICAL"};

constexpr std::array<std::string_view, 46> kEvents = {
    "sandbox_created",  "sandbox_entered",  "sandbox_execute",   "sandbox_exited",    "sandbox_failed",
    "sandbox_refused",  "sandbox_timeout",  "sandbox_destroyed", "lifecycle",         "process_created",
    "files_changed",    "policy_violation", "escape_attempt",    "limit_exceeded",    "limit_approached",
    "syscall_blocked",  "proxy_request",    "proxy_denied",      "proxy_blocked_dns", "dns_rebind_blocked",
    "redirect_blocked", "credential_used",  "approval_asked",    "approval_given",    "approval_denied",
    "approval_revoked", "tool_quarantined", "tool_released",     "alert_failed",      "clean",
    "log_started",      "log_continued",    "log_recovered",     "log_tail_lost",     "log_head_lost",
    "log_pruned",       "clock_set_back",   "proxy_overflow",    "proxy_opened",      "dns_query",
    "signal_sent",      "proxy_failed",     "http_request",      "http_refused",      "token_changed",
    "image_changed",
};
static_assert(static_cast<std::size_t>(EventType::image_changed) + 1 == kEvents.size());

template <class Enum, std::size_t N>
std::optional<Enum> lookUp(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t at = 0; at < N; ++at)
    if (names[at] == name) return static_cast<Enum>(at);
  return std::nullopt;
}

}  // namespace

std::string_view name(Severity severity) { return kSeverities[static_cast<std::size_t>(severity)]; }
std::string_view name(EventType type) { return kEvents[static_cast<std::size_t>(type)]; }
std::optional<Severity> severityNamed(std::string_view name) { return lookUp<Severity>(kSeverities, name); }
std::optional<EventType> eventNamed(std::string_view name) { return lookUp<EventType>(kEvents, name); }

std::string eventNames() {
  std::string names;
  for (const std::string_view event : kEvents) names += (names.empty() ? "" : " ") + std::string(event);
  return names;
}

Fields& Fields::raw(std::string_view key, std::string_view json) {
  if (!members_.empty()) members_ += ',';
  appendJsonString(members_, key);
  members_ += ':';
  members_ += json;
  return *this;
}

Fields& Fields::text(std::string_view key, std::string_view value) {
  std::string quoted;
  if (value.size() <= kMaxValue) {
    appendJsonString(quoted, value);
  } else {
    appendJsonString(quoted, std::string(value.substr(0, kMaxValue)) + "... (" +
                                 std::to_string(value.size() - kMaxValue) + " bytes more)");
  }
  return raw(key, quoted);
}

Fields& Fields::real(std::string_view key, double value) {
  if (!std::isfinite(value)) return raw(key, "null");
  char text[352];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return raw(key, text);
}

}  // namespace caisson::audit
