#include "server/describe.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "api/commit_text.h"
#include "base/base64.h"
#include "base/safe_text.h"
#include "base/utf8.h"
#include "policy/model.h"
#include "policy/units.h"
#include "server/app.h"

namespace caisson::server {

Json describeSandbox(const service::Sandbox& sandbox, const SessionInfo& info) {
  const service::SandboxRecord& record = sandbox.record();
  Json value{{"id", info.id},
             {"name", record.name},
             {"labels", record.labels},
             {"state", !info.problem.empty()  ? "damaged"
                       : info.expires_in <= 0 ? "expired"
                       : info.live            ? "running"
                                              : "stopped"},
             {"created", info.created},
             {"expires_in", std::floor(info.expires_in)},
             {"sandbox_timeout", info.ttl_seconds},
             {"command_timeout", record.command_timeout},
             {"workspace", info.workspace},
             {"profile", record.profile},
             {"network", info.network},
             {"allowed_hosts", info.allowed_hosts}};
  if (!record.template_name.empty()) value["template"] = record.template_name;
  if (!info.problem.empty()) value["problem"] = info.problem;
  return value;
}

Json describeCommand(const ExecInfo& info) {
  Json value{{"id", commandId(info.exec)},
             {"args", info.command},
             {"started", info.started},
             {"running", info.running},
             {"stdout_bytes", info.out_bytes},
             {"stderr_bytes", info.err_bytes},
             {"stdout_dropped_bytes", info.out_dropped},
             {"stderr_dropped_bytes", info.err_dropped}};
  if (info.running) return value;
  value["outcome"] = name(info.outcome);
  value["exit_code"] = info.outcome == OutcomeKind::exited ? Json(info.exit_code) : Json(nullptr);
  value["signal"] = info.signal != 0 ? Json(info.signal) : Json(nullptr);
  value["limit"] = info.limit != Limit::none ? Json(name(info.limit)) : Json(nullptr);
  value["duration_ms"] = info.usage.wall_ms;
  value["usage"] = {{"user_cpu_ms", info.usage.user_cpu_ms},
                    {"system_cpu_ms", info.usage.system_cpu_ms},
                    {"peak_memory_bytes", info.usage.peak_memory_bytes}};
  return value;
}

Json describeListedCommand(ExecInfo info) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 10U;
  constexpr std::size_t kSeparators = 4;  ///< also of an empty argument
  std::size_t left = kMaxBytes;
  bool cut = false;
  for (std::size_t i = 0; i < info.command.size() && !cut; ++i) {
    std::string& argument = info.command[i];
    cut = argument.size() + kSeparators > left;
    if (cut) {
      std::size_t end = std::min(argument.size(), left);
      while (end > 0 && end < argument.size() && (static_cast<unsigned char>(argument[end]) & 0xC0U) == 0x80U) --end;
      argument.resize(end);
      info.command.resize(i + 1);
    } else {
      left -= argument.size() + kSeparators;
    }
  }
  Json value = describeCommand(info);
  if (cut) value["args_truncated"] = true;
  return value;
}

Json describeFile(const FileEntry& entry) {
  Json value{{"type", entry.type}, {"size", entry.size}, {"mode", entry.mode}, {"modified", entry.modified}};
  setBytes(value, "name", entry.name);
  return value;
}

namespace {

constexpr std::size_t kMaxChangesShown = 100;
constexpr std::size_t kMaxChangesBytes = std::size_t{16} << 10U;
constexpr std::size_t kMaxCautionBytes = 2000;
constexpr std::size_t kMaxCautions = 5;

Json describeChange(const ManifestEntry& entry) {
  Json value{{"kind", name(entry.kind)}, {"path", safeLine(entry.path)}, {"type", entry.type}, {"size", entry.size}};
  if (value["path"] != entry.path) value["escaped"] = true;
  if ((entry.mode & 0111U) != 0 && entry.type != "directory") value["executable"] = true;
  if (!entry.target.empty()) value["target"] = safeLine(entry.target);
  if (entry.replaces_directory) value["replaces_directory"] = true;
  if (const std::string mode = modeChange(entry); !mode.empty()) value["mode_change"] = mode;
  if (entry.held_unless_named) value["caution"] = safeLine(entry.held_reason);
  return value;
}

std::string shortCaution(const CommitReport& report) {
  std::string text;
  for (std::size_t most = kMaxCautions;; --most) {
    text = commitCaution(report, most);
    if (text.size() <= kMaxCautionBytes || most == 0) return text;
  }
}

}  // namespace

Json describeForApproval(const CommitReport& report, const std::string& workspace) {
  std::vector<const ManifestEntry*> order = cautionEntries(report);
  const std::size_t cautions = order.size();
  for (const ManifestEntry& entry : report.applied)
    if (!entry.held_unless_named) order.push_back(&entry);
  Json changes = Json::array();
  std::size_t bytes = 0;
  for (const ManifestEntry* entry : order) {
    Json one = describeChange(*entry);
    bytes += writeJson(one).size();
    if (changes.size() >= kMaxChangesShown || (bytes > kMaxChangesBytes && !changes.empty())) break;
    changes.push_back(std::move(one));
  }
  std::string meaning = commitTotals(report) + " of the sandbox are written to the real files below " + workspace +
                        "; the approval holds for exactly this content, digest " + report.digest;
  if (const std::string caution = shortCaution(report); !caution.empty()) meaning += ". " + caution;
  return {{"meaning", std::move(meaning)},
          {"changes_total", order.size()},
          {"changes_not_listed", order.size() - changes.size()},
          {"changes_with_caution", cautions},
          {"changes", std::move(changes)}};
}

Json describeApproval(const service::PendingApproval& approval, bool with_changes) {
  Json value{{"id", approval.id},
             {"what", approval.what},
             {"meaning", approval.meaning},
             {"sandbox_id", approval.sandbox},
             {"caller", approval.caller_name},
             {"asked", approval.asked.wall},
             {"state", approval.state}};
  if (!approval.exactly.empty()) value["digest"] = approval.exactly;
  for (const char* member : {"changes_total", "changes_not_listed", "changes_with_caution", "changes"})
    if (const Json* part = find(approval.content, member); part != nullptr && (with_changes || !part->is_array()))
      value[member] = *part;
  return value;
}

void addBytes(Json& value, std::string_view bytes) {
  const bool plain = isUtf8(bytes);
  value["data"] = plain ? std::string(bytes) : encodeBase64(bytes);
  value["encoding"] = plain ? "utf-8" : "base64";
}

std::optional<std::uint32_t> commandNumber(std::string_view id) {
  std::uint32_t number = 0;
  if (!id.starts_with('c')) return std::nullopt;
  const auto [end, problem] = std::from_chars(id.data() + 1, id.data() + id.size(), number);
  if (problem != std::errc() || end != id.data() + id.size() || number == 0) return std::nullopt;
  return number;
}

std::string commandId(std::uint32_t number) { return "c" + std::to_string(number); }

std::uint64_t describeMemory(const policy::Policy& policy) {
  const auto whole =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t memory = policy.resources.memory;
  return policy::isShare(memory) ? whole / 100 * policy::percentOf(memory) : memory;
}

std::string findNameFlaw(const Call& call) {
  constexpr std::size_t kMaxName = 128;
  return call.text("name").size() > kMaxName ? "the name is longer than 128 bytes" : "";
}

http::Response approvalNeeded(Call& call, const std::vector<service::PendingApproval>& missing) {
  Json list = Json::array();
  for (const service::PendingApproval& one : missing) {
    list.push_back(describeApproval(one));
    call.app.events().publish("approval.requested", one.sandbox, one.caller, describeApproval(one, false));
  }
  http::Response response =
      problem(403, "approval_required", "the owner has to allow this", "repeat the request once it is allowed");
  Json value = *parseJson(std::get<std::string>(response.body));
  value["approvals"] = std::move(list);
  response.body = writeJson(value) + "\n";
  return response;
}

}  // namespace caisson::server
