// The contents of file, output and audit resources.
#include <deque>

#include "audit/reader.h"
#include "base/base64.h"
#include "base/utf8.h"
#include "mcp/protocol/results.h"
#include "mcp/protocol/uri.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/resources.h"

namespace caisson::mcp {
namespace {

/// Maximum content of one message; clients close the connection at 10 MiB.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMaxOutput = std::uint64_t{4} << 20U;
constexpr std::size_t kMaxEntries = 1000;
constexpr std::size_t kMaxEvents = 500;

Json bytesContent(const std::string& uri, const std::string& bytes) {
  if (isUtf8(bytes)) return {{"uri", uri}, {"mimeType", "text/plain"}, {"text", bytes}};
  return {{"uri", uri}, {"mimeType", "application/octet-stream"}, {"blob", encodeBase64(bytes)}};
}

Json directoryJson(const Sandbox& sandbox, const std::string& path, const std::vector<FileEntry>& entries) {
  Json list = Json::array();
  for (const FileEntry& entry : entries) {
    if (list.size() == kMaxEntries) break;
    list.push_back({{"name", entry.name},
                    {"type", entry.type},
                    {"size", entry.size},
                    {"uri", fileUri(sandbox, path.empty() ? entry.name : path + "/" + entry.name)}});
  }
  const bool cut = entries.size() > list.size();
  return {{"path", path}, {"entries", std::move(list)}, {"total_entries", entries.size()}, {"truncated", cut}};
}

}  // namespace

Json jsonContent(const std::string& uri, const Json& value) {
  return {{"uri", uri}, {"mimeType", "application/json"}, {"text", writeJson(value)}};
}

Outcome readFileContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                        std::string_view rest) {
  auto path = decodePercent(rest);
  if (!path) return resourceNotFound(call, uri, "the path is not written as an address");
  while (path->ends_with('/')) path->pop_back();
  const std::string shown = path->empty() ? "." : *path;
  auto piece = sandboxes.with(sandbox, [&](Session& session) { return session.read(shown, 0, kMaxBytes); });
  if (piece) {
    if (piece->size <= kMaxBytes) return resourceResult(call, bytesContent(uri, piece->data));
    return RpcError{code::kInvalidParams,
                    "the file has " + std::to_string(piece->size) +
                        " bytes, too many for one message; read it in pieces with sandbox_read_file",
                    {{"uri", uri}}};
  }
  const auto entries = sandboxes.with(sandbox, [&](Session& session) { return session.listFiles(shown); });
  if (!entries) return resourceNotFound(call, uri, piece.error().message());
  return resourceResult(call, jsonContent(uri, directoryJson(sandbox, *path, *entries)));
}

Outcome readOutputContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                          std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const std::string exec_id(rest.substr(0, slash));
  const std::string_view stream = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (stream != "stdout" && stream != "stderr") return resourceNotFound(call, uri, "there is no such output");
  if (const auto execution = sandbox.execution(exec_id)) {
    const auto view = execution->view();
    return resourceResult(call, bytesContent(uri, stream == "stdout" ? view.out : view.err));
  }
  const auto number = backgroundNumber(exec_id);
  if (!number) return resourceNotFound(call, uri, "there is no such output");
  const auto kind = stream == "stdout" ? OutputStreamKind::out : OutputStreamKind::err;
  const auto kept =
      sandboxes.with(sandbox, [&](Session& session) { return session.logs(*number, kind, 0, kMaxOutput); });
  if (!kept) return resourceNotFound(call, uri, kept.error().message());
  return resourceResult(call, bytesContent(uri, kept->data));
}

Outcome readAuditContent(const Call& call, const Sandbox& sandbox, const std::string& uri) {
  auto reader = audit::Reader::open(audit::logDirectory());
  if (!reader) return RpcError{code::kInternal, reader.error().message(), {{"uri", uri}}};
  std::deque<Json> events;
  std::size_t total = 0;
  const auto read = reader->read([&](audit::Entry&& entry, std::string_view) {
    if (entry.sandbox != sandbox.id()) return;
    ++total;
    Json data = Json::parse(entry.data, nullptr, false);
    events.push_back({{"seq", entry.seq},
                      {"time", entry.time},
                      {"event", entry.event},
                      {"severity", audit::name(entry.severity)},
                      {"data", data.is_discarded() ? Json::object() : std::move(data)}});
    if (events.size() > kMaxEvents) events.pop_front();
  });
  if (!read) return RpcError{code::kInternal, read.error().message(), {{"uri", uri}}};
  return resourceResult(call, jsonContent(uri, {{"sandbox_id", sandbox.id()},
                                                {"events", Json(events)},
                                                {"total_events", total},
                                                {"truncated", total > kMaxEvents}}));
}

}  // namespace caisson::mcp
