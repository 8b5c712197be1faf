// Errors as responses (RFC 9457).
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "server/route.h"

namespace caisson::server {
namespace {

struct Mapping {
  int number, status;
  std::string_view code;
};

constexpr Mapping kMappings[] = {
    {EDQUOT, 507, "disk_quota"},
    {EUSERS, 429, "quota_exceeded"},  // of a token
    {ENOENT, 404, "not_found"},
    {EACCES, 403, "forbidden"},
    {EPERM, 403, "forbidden"},
    {ENOSPC, 507, "disk_full"},
    {EBUSY, 409, "busy"},
    {EEXIST, 409, "exists"},
    {ENOTEMPTY, 409, "not_empty"},
    {EISDIR, 400, "is_directory"},
    {ENOTDIR, 400, "not_a_directory"},
    {ELOOP, 400, "is_link"},
    {EINVAL, 400, "invalid"},
    {ENAMETOOLONG, 400, "invalid"},
    {ETIMEDOUT, 503, "timed_out"},
    {ESRCH, 409, "ended"},
    {EPIPE, 409, "ended"},
    {EXDEV, 400, "invalid"},
    {EFBIG, 507, "file_too_large"},
    {EADDRINUSE, 409, "port_in_use"},
    {EROFS, 403, "read_only"},
    {ENXIO, 400, "not_a_regular_file"},
    {ENODEV, 400, "not_a_regular_file"},
    {EPROTONOSUPPORT, 409, "other_version"},  // of caisson (base/version.h)
};

/// Errors of the request itself; the others are the machine's.
bool isCallersFault(Stage stage) {
  return stage == Stage::usage || stage == Stage::policy || stage == Stage::plan || stage == Stage::limits ||
         stage == Stage::exec;
}

std::pair<int, std::string_view> statusOf(const Error& error) {
  if (error.code == ErrorCode::path_escapes) return {403, "path_escapes"};
  if (error.code == ErrorCode::digest_mismatch) return {409, "digest_mismatch"};
  if (error.code == ErrorCode::directory_replaced) return {409, "directory_replaced"};
  if (error.code == ErrorCode::command_denied) return {403, "command_denied"};
  for (const Mapping& mapping : kMappings)
    if (mapping.number == error.sys_errno) return {mapping.status, mapping.code};
  if (isCallersFault(error.stage)) return {400, error.code == ErrorCode::other ? "invalid" : name(error.code)};
  return {503, error.code == ErrorCode::other ? "unavailable" : name(error.code)};
}

}  // namespace

http::Response problem(int status, std::string_view code, std::string_view reason, std::string_view action) {
  Json value{{"type", "urn:caisson:error:" + std::string(code)},
             {"title", http::reasonPhrase(status)},
             {"status", status},
             {"code", code},
             {"reason", reason}};
  if (!action.empty()) value["try"] = action;
  http::Response response = jsonResponse(status, value);
  response.headers.front().second = "application/problem+json";
  return response;
}

http::Response tooMany() {
  return problem(429, "too_many_streams", "too many streams, terminals or archives of this caller", "close some");
}

http::Response tooManyBytes() {
  http::Response response =
      problem(429, "too_many_bytes", "large requests and responses of this token use too much memory",
              "read the responses, then try again");
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

http::Response notRecorded(const Error& error) {
  const bool full = error.sys_errno == ENOSPC || error.sys_errno == EDQUOT;
  if (full) return problem(507, "disk_full", "the audit log cannot be written: no space", "free space in CAISSON_HOME");
  return problem(503, "not_recorded", "the audit log cannot be written", "see the server's CAISSON_HOME/audit");
}

http::Response problemOf(const Error& error) {
  const auto [status, code] = statusOf(error);
  std::string reason = error.object.empty() ? "" : error.object + ": ";
  const char* words = error.sys_errno != 0 ? strerrordesc_np(error.sys_errno) : nullptr;
  reason += !error.reason.empty() ? error.reason : words != nullptr ? words : error.call;
  for (const Error& other : error.others) reason += "; " + other.object + ": " + other.reason;
  return problem(status, code, reason, error.hint);
}

}  // namespace caisson::server
