// Tools that bring files into a sandbox, from the client or another sandbox, and make files of one available to
// clients.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "mcp/sandbox/file_tool.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"
#include "sys/fd.h"

namespace caisson::mcp {
namespace {

constexpr std::uint64_t kLargestCopied = std::uint64_t{256} << 20U;
constexpr std::size_t kMaxDownloads = 100;
constexpr std::uint64_t kSampleBytes = 512;  ///< read of a file to find out its type

constexpr Parameter kUploadParameters[] = {
    kSandboxId,
    {.name = "path",
     .required = true,
     .description = "The file to make or replace: relative to /workspace, or absolute in the sandbox."},
    {.name = "source",
     .description = "The address (uri) of a file of this or another sandbox, as the tools and their resource links "
                    "give it: caisson://ID/fs/PATH. It is copied with its executable bit, at most 256 MiB."},
    {.name = "content", .description = "Instead of source: the content itself.", .any_bytes = true},
    kEncoding,
    kExecutable,
};

constexpr Parameter kDownloadParameters[] = {
    kSandboxId,
    {.name = "paths",
     .type = ParameterType::texts,
     .required = true,
     .description = "Files, relative to /workspace or absolute in the sandbox; at most 100."},
};

struct Uploaded {
  std::uint64_t size = 0;
  std::string_view type;
};

Error tooLarge(const std::string& object, std::uint64_t size) {
  return {.stage = Stage::usage,
          .call = "sandbox_upload",
          .object = object,
          .reason = "it has " + std::to_string(size) + " bytes, and at most " + std::to_string(kLargestCopied) +
                    " are copied",
          .hint = "compress or split it with a command first"};
}

Result<Uploaded> copyFile(Sandboxes& sandboxes, Sandbox& from, const FileAddress& source, Sandbox& to,
                          const std::string& path, WriteOptions options) {
  const auto opened =
      sandboxes.with(from, [&](Session& session) { return session.openFile(source.path, FileReach::sandbox); });
  if (!opened) return std::unexpected(opened.error());
  const sys::Fd file(*opened);
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    return std::unexpected(Error{.stage = Stage::state, .call = "fstat", .object = source.path, .sys_errno = errno});
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > kLargestCopied) return std::unexpected(tooLarge(source.path, size));
  if ((status.st_mode & S_IXUSR) != 0) options.mode = 0755;
  std::string sample;
  std::uint64_t total = 0;
  const auto read = [&](std::span<char> room) -> Result<std::size_t> {
    ssize_t got = 0;
    do {
      got = ::read(file.get(), room.data(), room.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0)
      return std::unexpected(Error{.stage = Stage::state, .call = "read", .object = source.path, .sys_errno = errno});
    total += static_cast<std::uint64_t>(got);
    if (total > kLargestCopied) return std::unexpected(tooLarge(source.path, total));  // it grew meanwhile
    if (sample.empty()) sample.assign(room.data(), std::min<std::size_t>(static_cast<std::size_t>(got), kSampleBytes));
    return static_cast<std::size_t>(got);
  };
  const auto written = sandboxes.with(to, [&](Session& session) { return session.writeFrom(path, read, options); });
  if (!written) return std::unexpected(written.error());
  endAtCharacter(sample);
  return Uploaded{*written, mimeTypeOf(path, sample)};
}

Result<Uploaded> writeContent(Sandboxes& sandboxes, Sandbox& to, const std::string& path, const std::string& content,
                              const WriteOptions& options) {
  const auto written = sandboxes.with(to, [&](Session& session) { return session.write(path, content, options); });
  if (!written) return std::unexpected(written.error());
  return Uploaded{content.size(), mimeTypeOf(path, content)};
}

Outcome upload(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  if (arguments.has("source") == arguments.has("content"))
    return errorResult("give either `source`, the address of a file, or `content`");
  const std::string path = arguments.text("path");
  const WriteOptions options = writeOptions(arguments);
  Result<Uploaded> done = Uploaded{};
  if (arguments.has("source")) {
    const auto source = parseFileUri(arguments.text("source"));
    if (!source || source->offset != 0 || source->limit)
      return errorResult(
          "`source` must be the address of a whole file: caisson://ID/fs/PATH or caisson://ID/root/PATH");
    auto from = sandboxes.find(source->sandbox_id);
    if (!from) return failure(call, from.error());
    done = copyFile(sandboxes, **from, *source, **sandbox, path, options);
  } else {
    const auto content = givenContent(arguments);
    if (!content) return errorResult(content.error());
    done = writeContent(sandboxes, **sandbox, path, *content, options);
  }
  if (!done) return failure(call, done.error());
  return fileResult(call, **sandbox, {path, done->type, done->size},
                    {{"sandbox_id", (*sandbox)->id()}, {"size", done->size}, {"mime_type", done->type}});
}

Outcome download(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const std::vector<std::string> paths = arguments.texts("paths");
  if (paths.empty() || paths.size() > kMaxDownloads)
    return errorResult("`paths` must name 1 to " + std::to_string(kMaxDownloads) + " files");
  Json files = Json::array(), refused = Json::array();
  for (const std::string& path : paths) {
    auto sample = sandboxes.with(
        **sandbox, [&](Session& session) { return session.read(path, 0, kSampleBytes, FileReach::sandbox); });
    if (!sample) {
      Json one{{"path", path}, {"error", sample.error().message()}};
      if (sample.error().sys_errno == EISDIR) one["error"] = path + " is a directory: name the files in it";
      refused.push_back(std::move(one));
      continue;
    }
    endAtCharacter(sample->data);
    files.push_back({{"path", path},
                     {"uri", fileUri(**sandbox, path)},
                     {"mime_type", mimeTypeOf(path, sample->data)},
                     {"size", sample->size}});
  }
  const bool failed = files.empty();
  Json result = structuredResult(
      call, {{"sandbox_id", (*sandbox)->id()}, {"files", files}, {"refused", std::move(refused)}}, failed);
  for (const Json& file : files)
    addLink(call, result, file["uri"], file["path"].get<std::string>(), file["mime_type"].get<std::string>(),
            file["size"].get<std::uint64_t>());
  return result;
}

}  // namespace

constinit const Tool kUploadTool{
    .name = "sandbox_upload",
    .title = "Bring a file into a sandbox",
    .description =
        "Make or replace a file of the sandbox: with the given content, or as a copy of a file of another sandbox, "
        "named "
        "by its address. Use it to hand results from one sandbox to another; the content does not pass through you.",
    .parameters = kUploadParameters,
    .output = R"("sandbox_id":{"type":"string"},"path":{"type":"string"},"size":{"type":"integer"},
      "mime_type":{"type":"string"},"uri":{"type":"string","description":"The file as a resource"})",
    .behaviour = {.destructive = true, .idempotent = true},
    .perform = upload,
};

constinit const Tool kDownloadTool{
    .name = "sandbox_download",
    .title = "Get addresses of files",
    .description =
        "Make files of the sandbox available to the user's client: returns a resource link for each, with its type and "
        "size. The client reads it by resources/read, files above 1 MiB in parts (?offset=N&limit=N). To read a file "
        "yourself, use sandbox_read_file.",
    .parameters = kDownloadParameters,
    .output = R"("sandbox_id":{"type":"string"},"files":{"type":"array","items":{"type":"object"}},
      "refused":{"type":"array","items":{"type":"object"}})",
    .behaviour = {.read_only = true, .destructive = false, .idempotent = true},
    .perform = download,
};

}  // namespace caisson::mcp
