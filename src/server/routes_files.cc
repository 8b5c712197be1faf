// Files of a sandbox's workspace.
//
// Every path is resolved beneath the workspace by the session (sys::RootDir); nothing here touches a path. Archives are
// packed and unpacked by tar inside the sandbox, so a hostile archive meets the sandbox's own limits.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/percent.h"
#include "base/text.h"
#include "server/app.h"
#include "server/body_paths.h"
#include "server/describe.h"
#include "server/streams.h"
#include "sys/state_home.h"

namespace caisson::server {
namespace {

using service::SandboxPointer;

constexpr std::uint64_t kMaxUpload = std::uint64_t{1} << 40U;

constexpr Field kPathField{
    .name = "path", .required = true, .description = "Relative to the workspace, or absolute inside it."};
constexpr Field kPathQuery[] = {kPathField};
constexpr Field kListFilesQuery[] = {{.name = "path", .description = "A directory; the workspace by default."}};
constexpr Field kWriteQuery[] = {kPathField, {.name = "mode", .description = "Permission bits, in octal: 644."}};
constexpr Field kRemoveQuery[] = {
    kPathField,
    {.name = "recursive", .type = FieldType::boolean, .description = "Remove a directory with everything in it."}};
constexpr Field kMoveFields[] = {
    {.name = "from", .required = true, .description = "The present path."},
    {.name = "to", .required = true, .description = "The new path."},
    {.name = "replace", .type = FieldType::boolean, .description = "Replace what is there."},
    kPathEncoding,
};
constexpr Field kMkdirFields[] = {kPathField, kPathEncoding};
constexpr double kPackSeconds = 3600;
constexpr Field kArchiveQuery[] = {kListFilesQuery[0],
                                   {.name = "command_timeout",
                                    .type = FieldType::number,
                                    .description = "Seconds after which tar is killed; 3600 by default.",
                                    .least = 0.001,
                                    .most = kPackSeconds}};

template <class Use>
http::Response onSandbox(Call& call, Use use) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  return use(*sandbox);
}

/// Headers of raw content: a browser must neither show it as a page nor run it.
http::Headers rawHeaders(std::string_view path) {
  const std::string name = std::string(path.substr(path.rfind('/') + 1));
  return {{"Content-Type", "application/octet-stream"},
          {"Content-Disposition", "attachment; filename*=UTF-8''" + encodePercent(name)},
          {"X-Content-Type-Options", "nosniff"},
          {"Content-Security-Policy", "sandbox; default-src 'none'"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

http::Response readContent(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) -> http::Response {
    const std::string path = call.query("path");
    const auto opened = call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.openFile(path); });
    if (!opened) return problemOf(opened.error());
    sys::Fd file(*opened);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return problem(503, "unavailable", "the file cannot be read");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const std::string* header = call.request.head.header("range");
    const http::Range range = http::parseRange(header == nullptr ? "" : *header, size);
    http::Response response{.headers = rawHeaders(path)};
    response.headers.emplace_back("Accept-Ranges", "bytes");
    if (range.unsatisfiable) {
      http::Response refusal = problem(416, "range", "the range is beyond the end of the file");
      refusal.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
      return refusal;
    }
    if (range.partial) {
      response.status = 206;
      response.headers.emplace_back("Content-Range", "bytes " + std::to_string(range.offset) + "-" +
                                                         std::to_string(range.offset + range.length - 1) + "/" +
                                                         std::to_string(size));
    }
    response.body = http::FileBody{std::move(file), range.offset, range.length};
    return response;
  });
}

http::Response writeContent(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    WriteOptions options;
    if (const std::string mode = call.query("mode"); !mode.empty()) {
      if (mode.size() > 4 || mode.find_first_not_of("01234567") != std::string::npos)
        return problem(400, "invalid_query", "mode: expected octal permission bits, for example 644");
      options.mode = static_cast<std::uint32_t>(std::stoul(mode, nullptr, 8)) & 0777U;
    }
    const auto read = [&](std::span<char> into) { return call.request.stream->read(into); };
    const auto wrote = call.app.sandboxes().with(
        *sandbox, [&](Session& session) { return session.writeFrom(call.query("path"), read, options); });
    if (!wrote) return problemOf(wrote.error());
    return jsonResponse(200, {{"size", *wrote}});
  });
}

http::Response removeContent(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const auto removed = call.app.sandboxes().with(*sandbox, [&](Session& session) {
      return session.removeFile(call.query("path"), call.queryFlag("recursive", false));
    });
    return removed ? http::Response{.status = 204} : problemOf(removed.error());
  });
}

http::Response listFiles(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const std::string path = call.query("path").empty() ? "." : call.query("path");
    const auto entries = call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.listFiles(path); });
    if (!entries && entries.error().sys_errno == EFBIG)
      return problem(400, "too_many_entries", entries.error().reason, "list it with a command in the sandbox");
    if (!entries) return problemOf(entries.error());
    JsonList list("files");
    bool truncated = false;
    for (const FileEntry& entry : *entries)
      if (truncated = !list.add(describeFile(entry)); truncated) break;
    return list.finish(truncated ? R"("truncated":true)" : "");
  });
}

http::Response statFile(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const auto entry =
        call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.statFile(call.query("path")); });
    return entry ? jsonResponse(200, describeFile(*entry)) : problemOf(entry.error());
  });
}

http::Response moveFile(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const auto from = pathInBody(call, "from"), to = pathInBody(call, "to");
    if (!from || !to) return invalidPath();
    const auto moved = call.app.sandboxes().with(
        *sandbox, [&](Session& session) { return session.moveFile(*from, *to, call.flag("replace")); });
    return moved ? http::Response{.status = 204} : problemOf(moved.error());
  });
}

http::Response makeDirectory(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const auto path = pathInBody(call, "path");
    if (!path) return invalidPath();
    const auto made =
        call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.makeDirectory(*path); });
    return made ? http::Response{.status = 204} : problemOf(made.error());
  });
}

http::Response watchFiles(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const std::string path = call.query("path").empty() ? "." : call.query("path");
    auto slot = call.app.takeSlot(call.caller, App::Lasting::costly);
    if (!slot) return tooMany();
    return streamResponse(watchSource(call.app, sandbox, path, {std::move(slot), call.bytes}));
  });
}

/// Output of a command that runs on a thread, for a peer that may be slower. Bounded: the command waits.
class PipedSource final : public http::Source {
 public:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::string bytes;
    bool ended = false, failed = false, abandoned = false;
    sys::Fd cancel{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  ///< readable: the command is to be killed
    std::string message;                                       ///< of a command that failed
    std::optional<Error> error;                                ///< why a command did not run at all
    std::function<void()> wake;
  };
  explicit PipedSource(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
  ~PipedSource() override {
    const std::lock_guard lock(queue_->mutex);
    queue_->abandoned = true;
    queue_->changed.notify_all();
    // Not only from the next output: a command that was stopped has none.
    const std::uint64_t one = 1;
    static_cast<void>(::write(queue_->cancel.get(), &one, sizeof one));
  }
  [[nodiscard]] bool mayEndEarly() const override { return false; }
  void onStart(std::function<void()> wake) override {
    const std::lock_guard lock(queue_->mutex);
    queue_->wake = std::move(wake);
  }
  Next next(std::string& piece) override {
    const std::lock_guard lock(queue_->mutex);
    piece = queue_->bytes.substr(0, kPiece);
    queue_->bytes.erase(0, piece.size());
    queue_->changed.notify_all();
    if (!piece.empty()) return {State::data};
    if (queue_->failed) return {State::abort};
    if (queue_->ended) return {State::end};
    return {State::wait, std::chrono::milliseconds(1000)};
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{64} << 10U;
  std::shared_ptr<Queue> queue_;
};

/// Adds output to the queue; waits while it is full. False if the reader is gone.
bool enqueue(PipedSource::Queue& queue, std::string_view bytes) {
  constexpr std::size_t kMaxQueued = std::size_t{1} << 20U;
  std::unique_lock lock(queue.mutex);
  queue.changed.wait(lock, [&] { return queue.abandoned || queue.bytes.size() < kMaxQueued; });
  if (queue.abandoned) return false;
  queue.bytes.append(bytes);
  queue.changed.notify_all();
  if (queue.wake) queue.wake();
  return true;
}

void closeQueue(PipedSource::Queue& queue, bool success) {
  const std::lock_guard lock(queue.mutex);
  queue.ended = true;
  queue.failed = !success;
  queue.changed.notify_all();
  if (queue.wake) queue.wake();
}

/// Waits until there is output or the command has ended, for a moment at most. Returns whether it failed before any.
bool failedAtOnce(PipedSource::Queue& queue) {
  std::unique_lock lock(queue.mutex);
  queue.changed.wait_for(lock, std::chrono::seconds(5), [&] { return queue.ended || !queue.bytes.empty(); });
  return queue.failed && queue.bytes.empty();
}

/// Sees whether an archive has its end: two blocks of zeros. tar writes them also after a file that it could not read,
/// and does not when it was stopped. Its exit status does not tell the two apart, and differs between implementations.
class ArchiveEnd {
 public:
  void add(std::string_view bytes) {
    size_ += bytes.size();
    const std::size_t last_other = bytes.find_last_not_of('\0');
    zeros_ = last_other == std::string_view::npos ? zeros_ + bytes.size() : bytes.size() - 1 - last_other;
  }
  bool isWhole() const { return zeros_ >= 2 * kBlock && size_ % kBlock == 0; }

 private:
  static constexpr std::uint64_t kBlock = 512;
  std::uint64_t size_ = 0, zeros_ = 0;
};

/// Runs tar in the sandbox until its archive is in the queue, or its reader is gone.
void packInto(App& app, const SandboxPointer& sandbox, const std::string& path, double seconds,
              PipedSource::Queue& queue) {
  constexpr std::size_t kMaxMessage = 1024;
  ExecRequest request{.command = {"tar", "-cf", "-", "-C", path, "."}};
  request.out = request.err = StreamMode::discard;
  request.output_limit = kMaxUpload;
  request.cancel_descriptor = queue.cancel.get();
  request.timeout_seconds = seconds;
  request.typed = true;  // the ceiling is for commands of the caller
  ArchiveEnd archive;
  request.on_output = [&](OutputStreamKind stream, std::string_view bytes) {
    if (stream != OutputStreamKind::out) {
      const std::lock_guard lock(queue.mutex);
      queue.message.append(bytes.substr(0, kMaxMessage - queue.message.size()));
      return;
    }
    archive.add(bytes);
    (void)enqueue(queue, bytes);
  };
  const auto result = app.sandboxes().with(*sandbox, [&](Session& session) { return session.exec(request); });
  if (!result) {
    const std::lock_guard lock(queue.mutex);
    queue.error = result.error();
  }
  closeQueue(queue, result && result->outcome == OutcomeKind::exited && archive.isWhole());
}

http::Response readArchive(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const std::string path = call.query("path").empty() ? "." : call.query("path");
    // Through the session first: the same answer for a path that leads out, and none for tar to fail on later.
    const auto entries = call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.listFiles(path); });
    if (!entries && entries.error().sys_errno != EFBIG) return problemOf(entries.error());
    auto slot = call.app.takeSlot(call.caller, App::Lasting::costly);
    if (!slot) return tooMany();
    auto queue = std::make_shared<PipedSource::Queue>();
    const std::string limit = call.query("command_timeout");
    const double seconds = limit.empty() ? kPackSeconds : std::atof(limit.c_str());
    const bool accepted = call.app.background().run(
        [&app = call.app, sandbox, queue, path, slot, seconds] { packInto(app, sandbox, path, seconds, *queue); },
        call.caller.owner ? "" : call.caller.id);
    if (!accepted) return problem(503, "busy", "too many archives are being made", "try again later");
    if (failedAtOnce(*queue)) {
      if (queue->error) return problemOf(*queue->error);
      return problem(400, "archive", "tar could not pack the directory: " + printable(queue->message, 300));
    }
    http::Response response{.headers = rawHeaders("workspace.tar"), .body = std::make_shared<PipedSource>(queue)};
    response.headers.front().second = "application/x-tar";
    return response;
  });
}

/// Whether CAISSON_HOME has no space: then neither tar's message nor its end can be stored.
bool isDiskFull() {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10U;
  const auto directory = sys::openStateDirectory("server");
  struct statvfs status{};
  return directory && ::fstatvfs(directory->get(), &status) == 0 &&
         std::uint64_t{status.f_bavail} * status.f_frsize < kLeast;
}

/// Waits until tar has ended, for `seconds` at most, and on a full disk only a moment.
Result<ExecInfo> waitForTar(Session& session, std::uint32_t number, int seconds) {
  for (int waited = 0;; ++waited) {
    auto info = session.wait(number, 1);
    if (!info || !info->running || waited >= seconds || isDiskFull()) return info;
  }
}

/// Why tar failed. Its message names a full disk, so its locale must be C.
http::Response archiveProblem(const ExecInfo& info, const std::string& message) {
  if (isDiskFull()) return problem(507, "disk_full", "no space to unpack the archive", "remove files");
  const std::string reason = "tar could not unpack the archive: " + printable(message, 300);
  const bool limited = info.outcome == OutcomeKind::limit && info.limit == Limit::disk;
  if (limited || message.find(strerrordesc_np(EDQUOT)) != std::string::npos)
    return problem(507, "disk_quota", reason, "remove files, or create a sandbox with a larger disk");
  if (message.find(strerrordesc_np(ENOSPC)) != std::string::npos)
    return problem(507, "disk_full", reason, "remove files");
  return problem(400, "archive", reason);
}

http::Response writeArchive(Call& call) {
  return onSandbox(call, [&](const SandboxPointer& sandbox) {
    const std::string path = call.query("path").empty() ? "." : call.query("path");
    auto unpacked = call.app.sandboxes().with(*sandbox, [&](Session& session) -> Result<ExecInfo> {
      if (path != ".")
        if (auto made = session.makeDirectory(path); !made) return std::unexpected(made.error());
      auto number = session.start({.command = {"tar", "-xf", "-", "--no-same-owner", "-C", path},
                                   .environment = {{"LC_ALL", "C"}},
                                   .keep_input = true});
      if (!number) return std::unexpected(number.error());
      std::vector<char> buffer(std::size_t{64} << 10U);
      for (;;) {
        const auto got = call.request.stream->read(buffer);
        const auto fed = !got ? Result<void>(std::unexpected(got.error()))
                              : session.feed(*number, std::string_view(buffer.data(), *got), *got == 0);
        if (got && fed && *got > 0) continue;
        // tar that closed its input is about to end. Nobody waits for the response if the client vanished.
        const auto info = got ? waitForTar(session, *number, fed ? 300 : 5) : session.wait(*number, 0.2);
        if (info && info->running) (void)session.stop(*number);
        if (!got && (!info || info->running)) return std::unexpected(got.error());
        return info;  // its message is better than a broken pipe
      }
    });
    if (!unpacked) return problemOf(unpacked.error());
    if (unpacked->running || unpacked->outcome != OutcomeKind::exited || unpacked->exit_code != 0) {
      const auto log = call.app.sandboxes().with(
          *sandbox, [&](Session& session) { return session.logs(unpacked->exec, OutputStreamKind::err, 0, 500); });
      return archiveProblem(*unpacked, log ? log->data : "");
    }
    return http::Response{.status = 204};
  });
}

constexpr Route kFileRoutes[] = {
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/files",
     .operation = "listFiles",
     .tag = "files",
     .summary = "List a directory",
     .query = kListFilesQuery,
     .result = "FileList",
     .lane = http::Lane::control,
     .perform = listFiles},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/files/content",
     .operation = "readFile",
     .tag = "files",
     .summary = "Read a file, or a range of it",
     .query = kPathQuery,
     .content_type = "application/octet-stream",
     .lane = http::Lane::control,
     .perform = readContent},
    {.method = "PUT",
     .pattern = "/v1/sandboxes/{id}/files/content",
     .operation = "writeFile",
     .tag = "files",
     .summary = "Create or replace a file, atomically",
     .access = Access::exec,
     .body = BodyKind::raw,
     .query = kWriteQuery,
     .result = "FileWritten",
     .lane = http::Lane::transfer,
     .body_limit = kMaxUpload,
     .perform = writeContent},
    {.method = "DELETE",
     .pattern = "/v1/sandboxes/{id}/files/content",
     .operation = "removeFile",
     .tag = "files",
     .summary = "Remove a file or directory",
     .access = Access::exec,
     .query = kRemoveQuery,
     .status = 204,
     .lane = http::Lane::transfer,
     .perform = removeContent},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/files/stat",
     .operation = "statFile",
     .tag = "files",
     .summary = "Type, size, mode and time of a file",
     .query = kPathQuery,
     .result = "File",
     .lane = http::Lane::control,
     .perform = statFile},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/files/move",
     .operation = "moveFile",
     .tag = "files",
     .summary = "Rename a file or directory",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kMoveFields,
     .status = 204,
     .lane = http::Lane::control,
     .perform = moveFile},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/files/mkdir",
     .operation = "makeDirectory",
     .tag = "files",
     .summary = "Create a directory and its parents",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kMkdirFields,
     .status = 204,
     .lane = http::Lane::control,
     .perform = makeDirectory},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/files/watch",
     .operation = "watchFiles",
     .tag = "files",
     .summary = "Changes below a directory, as server-sent events",
     .query = kListFilesQuery,
     .content_type = "text/event-stream",
     .perform = watchFiles},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/files/archive",
     .operation = "readArchive",
     .tag = "files",
     .summary = "A directory as a tar archive",
     .query = kArchiveQuery,
     .content_type = "application/x-tar",
     .lane = http::Lane::transfer,
     .perform = readArchive},
    {.method = "PUT",
     .pattern = "/v1/sandboxes/{id}/files/archive",
     .operation = "writeArchive",
     .tag = "files",
     .summary = "Unpack a tar archive into a directory",
     .access = Access::exec,
     .body = BodyKind::raw,
     .query = kListFilesQuery,
     .status = 204,
     .lane = http::Lane::transfer,
     .body_limit = kMaxUpload,
     .perform = writeArchive},
};

}  // namespace

std::span<const Route> fileRoutes() { return kFileRoutes; }

}  // namespace caisson::server
