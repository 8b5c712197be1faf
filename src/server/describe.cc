#include "server/describe.h"

#include <unistd.h>

#include <charconv>
#include <cmath>

#include "base/base64.h"
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

Json describeFile(const FileEntry& entry) {
  Json value{{"type", entry.type}, {"size", entry.size}, {"mode", entry.mode}, {"modified", entry.modified}};
  setBytes(value, "name", entry.name);
  return value;
}

Json describeApproval(const service::PendingApproval& approval) {
  Json value{{"id", approval.id},
             {"what", approval.what},
             {"meaning", approval.meaning},
             {"sandbox_id", approval.sandbox},
             {"caller", approval.caller_name},
             {"asked", approval.asked.wall},
             {"state", approval.state}};
  if (!approval.exactly.empty()) value["digest"] = approval.exactly;
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
    call.app.events().publish("approval.requested", one.sandbox, one.caller, describeApproval(one));
  }
  http::Response response =
      problem(403, "approval_required", "the owner has to allow this", "repeat the request once it is allowed");
  Json value = *parseJson(std::get<std::string>(response.body));
  value["approvals"] = std::move(list);
  response.body = writeJson(value) + "\n";
  return response;
}

}  // namespace caisson::server
