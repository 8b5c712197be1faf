// The recorded events, as values. To add a type, add one row to EventType and one to event.cc.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::audit {

enum class Severity : std::uint8_t { info, warn, error, critical };

enum class EventType : std::uint8_t {
  sandbox_created,     ///< a plan is about to be applied
  sandbox_entered,     ///< another command in an existing sandbox
  sandbox_execute,     ///< a command is about to start: hash, redacted preview, level, network mode
  sandbox_exited,      ///< how it ended, with resource usage
  sandbox_failed,      ///< the sandbox could not be built
  sandbox_refused,     ///< denied before anything was built
  sandbox_timeout,     ///< killed by the wall-time limit
  sandbox_destroyed,   ///< everything was removed
  lifecycle,           ///< a state that a run entered: Created, Initialized, Running ...
  process_created,     ///< a fork or exec of the payload: program, parent, count; sampled
  files_changed,       ///< what a run or session created, changed or deleted
  policy_violation,    ///< a denied command, or a client's file request that leads out of the workspace
  escape_attempt,      ///< a blocked call grave enough to kill the sandbox
  limit_exceeded,      ///< a limit other than time was reached: which one
  limit_approached,    ///< a limit is nearly used up
  syscall_blocked,     ///< the filter denied a call; a flood is sampled
  proxy_request,       ///< an allowed connection has closed, with bytes and duration
  proxy_denied,        ///< a denied connection or packet
  proxy_blocked_dns,   ///< a denied DNS query
  dns_rebind_blocked,  ///< an allowed name resolved to, or an allowed address is, a blocked one
  redirect_blocked,    ///< a host redirected to a denied one
  credential_used,     ///< a request was sent with a credential: which one and in which header, never its value
  approval_asked,      ///< the owner is being prompted
  approval_given,      ///< granted, or redeemed: see the field `action`
  approval_denied,
  approval_revoked,
  tool_quarantined,  ///< it may not run again until it is released
  tool_released,
  alert_failed,    ///< the alert command or webhook failed
  clean,           ///< leftovers of crashed runs were removed
  log_started,     ///< the first line of a chain
  log_continued,   ///< the first line of a further file of a chain
  log_recovered,   ///< a writer died within a line; the partial line was truncated
  log_tail_lost,   ///< the file is shorter than what was written
  log_head_lost,   ///< the record of the chain's end was missing or unreadable
  log_pruned,      ///< old files were removed because of the total size limit
  clock_set_back,  ///< the host's clock went backwards since the previous event
  proxy_overflow,  ///< requests without an individual event: class, count, first and last time
  proxy_opened,    ///< an allowed connection was made; proxy_request follows when it closes, with bytes and duration
  dns_query,       ///< an allowed query: the name and how often
  signal_sent,     ///< a signal that did not end the payload: which, from whom, how often
  proxy_failed,    ///< an allowed host that could not be reached: its name does not exist, it does not answer
  http_request,    ///< a request to the HTTP server is about to be carried out: caller, operation
  http_refused,    ///< a request to the HTTP server was refused: caller, status, reason
  token_changed,   ///< a token was created or revoked: see the field `action`
  image_changed,   ///< an image is about to be added to or removed from the store: action, name, digest
};

std::string_view name(Severity severity);
std::string_view name(EventType type);
/// The inverse of name(); nullopt for an unknown one.
std::optional<Severity> severityNamed(std::string_view name);
std::optional<EventType> eventNamed(std::string_view name);
std::string eventNames();  ///< all of them, separated by blanks

/// The details of an event: a flat JSON object, in insertion order. Texts longer than kMaxValue bytes are truncated
/// and marked.
///   Fields().text("program", path).number("pid", pid)
class Fields {
 public:
  static constexpr std::size_t kMaxValue = 4096;

  /// Adds a member; the functions return *this.
  Fields& text(std::string_view key, std::string_view value);
  Fields& number(std::string_view key, std::integral auto value) { return raw(key, std::to_string(value)); }
  Fields& real(std::string_view key, double value);  ///< with three decimals; null if it is not finite
  Fields& flag(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  Fields& raw(std::string_view key, std::string_view json);  ///< a value that is already JSON, on one line

  [[nodiscard]] std::string json() const { return members_.empty() ? "{}" : "{" + members_ + "}"; }

 private:
  std::string members_;
};

/// Resource usage of a run, for the metrics; the fields contain it as well.
struct Measures {
  std::uint8_t outcome = 0;  ///< an OutcomeKind
  double wall_seconds = 0, cpu_seconds = 0;
  std::uint64_t peak_memory_bytes = 0, read_bytes = 0, written_bytes = 0, network_bytes = 0;
  std::uint64_t syscalls_blocked = 0, network_denied = 0;
};

struct Event {
  EventType type = EventType::lifecycle;
  Severity severity = Severity::info;
  std::string sandbox;  ///< its id, or empty; owned, since a deferred event outlives the call that appends it
  Fields fields;
  std::optional<Measures> measures = std::nullopt;  ///< of a run that has ended
};

}  // namespace caisson::audit
