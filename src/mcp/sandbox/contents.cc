// The contents of file, output and audit resources.
#include <algorithm>
#include <cerrno>
#include <deque>

#include "audit/reader.h"
#include "base/base64.h"
#include "base/text.h"
#include "base/utf8.h"
#include "mcp/protocol/results.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/resources.h"

namespace caisson::mcp {
namespace {

/// Maximum content of one message; clients close the connection at 10 MiB.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMaxOutput = std::uint64_t{4} << 20U;
constexpr std::size_t kMaxEntries = 1000;
constexpr std::size_t kMaxEvents = 500;

/// By name, in lower case. Types that a host could run or render as a page are left out: the file is a stranger's.
constexpr struct {
  std::string_view suffix, type;
} kMimeTypes[] = {
    {".csv", "text/csv"},   {".gif", "image/gif"},         {".gz", "application/gzip"}, {".jpeg", "image/jpeg"},
    {".jpg", "image/jpeg"}, {".json", "application/json"}, {".md", "text/markdown"},    {".mp3", "audio/mpeg"},
    {".mp4", "video/mp4"},  {".pdf", "application/pdf"},   {".png", "image/png"},       {".tar", "application/x-tar"},
    {".wav", "audio/wav"},  {".webp", "image/webp"},       {".zip", "application/zip"},
};

Json bytesContent(const std::string& uri, const std::string& bytes, std::string_view type) {
  if (isSentAsText(bytes)) return {{"uri", uri}, {"mimeType", type}, {"text", bytes}};
  return {{"uri", uri}, {"mimeType", type}, {"blob", encodeBase64(bytes)}};
}

Json outputContent(const std::string& uri, const std::string& bytes) {
  return bytesContent(uri, bytes, mimeTypeOf("", bytes));
}

Json directoryJson(const Sandbox& sandbox, const std::string& path, const std::vector<FileEntry>& entries) {
  Json list = Json::array();
  for (const FileEntry& entry : entries) {
    if (list.size() == kMaxEntries) break;
    Json one{{"type", entry.type},
             {"size", entry.size},
             {"uri", fileUri(sandbox, path == "." ? entry.name : path + "/" + entry.name)}};
    setBytes(one, "name", entry.name);
    list.push_back(std::move(one));
  }
  const bool cut = entries.size() > list.size();
  Json value{{"entries", std::move(list)}, {"total_entries", entries.size()}, {"truncated", cut}};
  setBytes(value, "path", path);
  return value;
}

}  // namespace

Json jsonContent(const std::string& uri, const Json& value) {
  return {{"uri", uri}, {"mimeType", "application/json"}, {"text", writeJson(value)}};
}

bool isSentAsText(std::string_view bytes) {
  const auto control = [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t' && letter != '\r';
  };
  return isUtf8(bytes) && static_cast<std::size_t>(std::ranges::count_if(bytes, control)) <= bytes.size() / 16;
}

void endAtCharacter(std::string& data) {
  for (int back = 0; back < 3 && !data.empty() && !isUtf8(data); ++back) {
    const std::size_t start = data.size() - static_cast<std::size_t>(back) - 1;
    if (isUtf8(std::string_view(data).substr(0, start))) {
      data.resize(start);
      return;
    }
  }
}

std::string_view mimeTypeOf(std::string_view path, std::string_view bytes) {
  const std::string name = lowered(path.substr(path.rfind('/') + 1));
  for (const auto& [suffix, type] : kMimeTypes)
    if (name.ends_with(suffix)) return type;
  return isSentAsText(bytes) ? "text/plain" : "application/octet-stream";
}

Outcome readFileContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                        const FileAddress& address) {
  const std::uint64_t limit = std::min(address.limit.value_or(kMaxBytes), kMaxBytes);
  auto piece = sandboxes.with(
      sandbox, [&](Session& session) { return session.read(address.path, address.offset, limit, FileReach::sandbox); });
  if (piece) {
    if (address.limit || address.offset + piece->data.size() >= piece->size)
      return resourceResult(call, bytesContent(uri, piece->data, mimeTypeOf(address.path, piece->data)));
    return RpcError{code::kInvalidParams,
                    "the file has " + std::to_string(piece->size) +
                        " bytes, too many for one message; add ?offset=0&limit=1048576 to the address, or read it in "
                        "pieces with sandbox_read_file",
                    {{"uri", uri}}};
  }
  if (piece.error().sys_errno != EISDIR) return resourceNotFound(call, uri, piece.error().message());
  const auto entries = sandboxes.with(
      sandbox, [&](Session& session) { return session.listFiles(address.path, nullptr, FileReach::sandbox); });
  if (!entries) return resourceNotFound(call, uri, entries.error().message());
  return resourceResult(call, jsonContent(uri, directoryJson(sandbox, address.path, *entries)));
}

Outcome readOutputContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                          std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const std::string exec_id(rest.substr(0, slash));
  const std::string_view stream = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (stream != "stdout" && stream != "stderr") return resourceNotFound(call, uri, "there is no such output");
  if (const auto execution = sandbox.execution(exec_id)) {
    const auto view = execution->view();
    if (view.output_gone) return resourceNotFound(call, uri, std::string(kOutputGone));
    return resourceResult(call, outputContent(uri, stream == "stdout" ? view.out : view.err));
  }
  const auto number = backgroundNumber(exec_id);
  if (!number) return resourceNotFound(call, uri, "there is no such output");
  const auto kind = stream == "stdout" ? OutputStreamKind::out : OutputStreamKind::err;
  const auto kept =
      sandboxes.with(sandbox, [&](Session& session) { return session.logs(*number, kind, 0, kMaxOutput); });
  if (!kept) return resourceNotFound(call, uri, kept.error().message());
  return resourceResult(call, outputContent(uri, kept->data));
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
