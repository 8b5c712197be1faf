#include "server/streams.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>

#include "audit/reader.h"
#include "base/utf8.h"
#include "server/audit_access.h"
#include "server/describe.h"

namespace caisson::server {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = std::size_t{32} << 10U;
constexpr milliseconds kShortestPause{5};
constexpr milliseconds kMaxPause{250};
constexpr std::chrono::seconds kHeartbeat{15};
/// Besides watches: they may miss a change, for example after a restart of the sandbox.
constexpr milliseconds kLookAgain{2000};

/// Pauses that grow while nothing happens, and comments that keep idle connections open through proxies.
class Pace {
 public:
  /// `watched`: a change wakes the reader.
  http::Source::Next pause(std::string& piece, bool watched = false) {
    if (Clock::now() - last_ >= kHeartbeat) {
      piece += ": still here\n\n";
      last_ = Clock::now();
    }
    pause_ = std::min(pause_ * 2, kMaxPause);
    return {http::Source::State::wait, watched ? kLookAgain : pause_};
  }
  http::Source::Next data() {
    pause_ = kShortestPause;
    last_ = Clock::now();
    return {http::Source::State::data};
  }

 private:
  milliseconds pause_ = kShortestPause;
  Clock::time_point last_ = Clock::now();
};

/// Leaves out a character that is cut at the end, so that text stays text. Never leaves out everything.
std::string_view wholeCharacters(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back < bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if (byte < 0x80) return bytes;
    if (byte < 0xC0) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return length > back ? bytes.substr(0, bytes.size() - back) : bytes;
  }
  return bytes;
}

class OutputSource final : public http::Source {
 public:
  OutputSource(OutputOptions options, bool follow, std::string first)
      : app_(options.app),
        sandbox_(std::move(options.sandbox)),
        command_(options.command),
        offsets_{options.out, options.err},
        slot_(std::move(options.slot)),
        follow_(follow),
        first_(std::move(first)) {}
  ~OutputSource() override { app_.watcher().forget(this); }
  OutputSource(const OutputSource&) = delete;
  OutputSource& operator=(const OutputSource&) = delete;

  void onStart(std::function<void()> wake) override { wake_ = std::move(wake); }
  Next next(std::string& piece) override {
    piece += std::exchange(first_, "");
    bool ended = true, watched = false;
    const auto read = app_.sandboxes().with(*sandbox_, [&](Session& session) -> Result<void> {
      // Before reading: what is written meanwhile wakes us.
      if (follow_) (void)session.useLogs([&](int logs) { watched = app_.watcher().watch(this, logs, wake_); });
      for (const int stream : {0, 1}) {
        const auto kind = stream == 0 ? OutputStreamKind::out : OutputStreamKind::err;
        auto log = session.logs(command_, kind, offsets_[stream], kPiece);
        if (!log) return std::unexpected(log.error());
        ended = ended && log->end;
        const std::string_view bytes = log->end ? std::string_view(log->data) : wholeCharacters(log->data);
        if (bytes.empty()) continue;
        Json data{{"offset", offsets_[stream]}};
        addBytes(data, bytes);
        offsets_[stream] += bytes.size();
        piece += sseEvent(stream == 0 ? "stdout" : "stderr", id(), data);
      }
      return {};
    });
    if (!read) {
      piece += sseEvent("error", id(), {{"reason", read.error().message()}});
      return {State::end};
    }
    if (!piece.empty() && !ended) return pace_.data();
    if (!ended && !follow_) return {State::end};
    if (!ended) return pace_.pause(piece, watched);
    const auto info = app_.sandboxes().with(*sandbox_, [&](Session& session) { return session.status(command_); });
    piece += info ? sseEvent("exit", id(), describeCommand(*info))
                  : sseEvent("error", id(), {{"reason", info.error().message()}});
    return {State::end};
  }

 private:
  [[nodiscard]] std::string id() const { return std::to_string(offsets_[0]) + "-" + std::to_string(offsets_[1]); }

  App& app_;
  service::SandboxPointer sandbox_;
  std::uint32_t command_;
  std::uint64_t offsets_[2];
  std::shared_ptr<void> slot_;
  bool follow_;
  std::string first_;
  std::function<void()> wake_;
  Pace pace_;
};

class EventSource final : public http::Source {
 public:
  EventSource(App& app, service::Principal caller, std::uint64_t after, std::shared_ptr<void> slot)
      : app_(app), caller_(std::move(caller)), position_{.event = after}, slot_(std::move(slot)) {}

  void onStart(std::function<void()> wake) override {
    subscription_ = app_.events().subscribe([wake = std::move(wake)](const service::LifecycleEvent&) { wake(); });
  }
  Next next(std::string& piece) override {
    const auto events =
        app_.events().next(position_, kPiece, [this](const std::string& owner) { return caller_.sees(owner); });
    for (const service::LifecycleEvent& event : events)
      piece += sseEvent(event.type, std::to_string(event.id), describeEvent(event));
    if (!events.empty()) return {State::data};
    if (Clock::now() - last_ >= kHeartbeat) {
      piece += ": still here\n\n";
      last_ = Clock::now();
    }
    return {State::wait, milliseconds(kHeartbeat)};
  }

 private:
  App& app_;
  service::Principal caller_;
  service::Events::Position position_;
  std::shared_ptr<void> slot_;
  Clock::time_point last_ = Clock::now();
  std::shared_ptr<void> subscription_;
};

class AuditSource final : public http::Source {
 public:
  AuditSource(App& app, service::Principal caller, std::shared_ptr<void> slot)
      : app_(app), caller_(std::move(caller)), slot_(std::move(slot)) {}

  Next next(std::string& piece) override {
    const bool first = !reader_;
    if (first) {
      auto opened = audit::Reader::open(audit::logDirectory());
      if (!opened) return {State::end};
      reader_.emplace(*std::move(opened));
    }
    AuditAccess access(app_.sandboxes(), caller_);
    // The first pass only finds the end: old records are in GET /v1/audit.
    const auto read = reader_->read([&](audit::Entry&& entry, std::string_view) {
      if (!first && pending_.size() < (std::size_t{4} << 20U) && access.mayRead(entry)) {
        auto data = parseJson(entry.data);
        pending_ += sseEvent("audit", std::to_string(entry.seq),
                             {{"seq", entry.seq},
                              {"time", entry.time},
                              {"event", entry.event},
                              {"severity", audit::name(entry.severity)},
                              {"sandbox_id", entry.sandbox},
                              {"data", data ? *std::move(data) : Json()}});
      }
    });
    if (!read) return {State::end};
    piece = std::exchange(pending_, "");
    return piece.empty() ? pace_.pause(piece) : pace_.data();
  }

 private:
  App& app_;
  service::Principal caller_;
  std::shared_ptr<void> slot_;
  std::optional<audit::Reader> reader_;
  std::string pending_;
  Pace pace_;
};

/// Compares the tree with what it was: what a payload does to links or mounts cannot mislead that. Watches only tell
/// when to compare. A payload of the same user can use up all of them; then the tree is compared twice a second.
///
/// The payload chooses names and number of the files, so the memory for both lists is bounded and counted, and the
/// differences are sent in pieces.
class WatchSource final : public http::Source {
 public:
  WatchSource(App& app, service::SandboxPointer sandbox, std::string path, WatchHolds holds)
      : app_(app), sandbox_(std::move(sandbox)), path_(std::move(path)), holds_(std::move(holds)) {}
  ~WatchSource() override { app_.watcher().forget(this); }
  WatchSource(const WatchSource&) = delete;
  WatchSource& operator=(const WatchSource&) = delete;

  void onStart(std::function<void()> wake) override { wake_ = std::move(wake); }
  Next next(std::string& piece) override {
    if (comparing_) return sendDifferences(piece, true);
    // A change wakes this at once; a program that changes files in a loop must not make us list them all the time.
    if (const auto left = listed_at_ + kShortestRound - Clock::now(); started_ && left > Clock::duration::zero())
      return {State::wait, std::chrono::ceil<milliseconds>(left)};
    entries_ = bytes_ = directories_ = 0;
    auto listed = app_.sandboxes().with(*sandbox_, [&](Session& session) { return list(session, path_, 0); });
    listed_at_ = Clock::now();
    if (listed) listed = count();
    if (!listed) return fail(piece, listed.error().message());
    if (!started_) {
      piece += sseEvent("ready", "", {{"entries", now_.size()}, {"polling", !isWatched()}});
      started_ = true;
      before_ = std::exchange(now_, {});
      return slow_.data();
    }
    comparing_ = true;
    sent_ = 0;
    before_at_ = before_.begin();
    now_at_ = now_.begin();
    return sendDifferences(piece, false);
  }
  [[nodiscard]] http::Lane lane() const override { return http::Lane::control; }  // it may start the sandbox

 private:
  struct Seen {
    std::string type;
    std::uint64_t size = 0;
    std::int64_t modified = 0;
    std::uint32_t mode = 0;
    bool operator==(const Seen&) const = default;
  };
  using Entries = std::map<std::string, Seen>;

  static constexpr std::size_t kMaxEntries = 20'000;
  static constexpr std::size_t kMaxPathBytes = std::size_t{8} << 20U;
  static constexpr std::size_t kEntryBytes = 192;  ///< of memory for an entry, besides its path
  static constexpr int kMaxDepth = 32;
  static constexpr std::size_t kMaxWatches = 1024;
  static constexpr milliseconds kShortestRound{100};
  /// For the differences that one comparison finds; both lists are held meanwhile.
  static constexpr std::chrono::seconds kReadTime{30};
  static constexpr std::size_t kLeastRate = std::size_t{64} << 10U;  ///< bytes for each further second

  [[nodiscard]] bool isWatched() const { return directories_ <= kMaxWatches; }
  static Next fail(std::string& piece, std::string_view reason) {
    piece += sseEvent("error", "", {{"reason", reason}});
    return {State::end};
  }
  static Error tooLarge(std::string_view path, std::string_view what) {
    return {.stage = Stage::usage,
            .call = "watch",
            .object = std::string(path),
            .reason = std::string(what),
            .hint = "watch a smaller directory"};
  }

  /// Watches a directory before it is listed.
  void watch(int directory) {
    if (directories_ >= kMaxWatches || !app_.watcher().watch(this, directory, wake_)) directories_ = kMaxWatches;
    ++directories_;
  }
  Result<void> list(Session& session, const std::string& path, int depth) {
    if (depth == 0) now_.clear();
    auto entries = session.listFiles(path, [this](int directory) { watch(directory); });
    if (!entries) {
      if (depth == 0 || entries.error().sys_errno == EFBIG) return std::unexpected(entries.error());
      return {};  // removed meanwhile
    }
    const std::string prefix = path.empty() || path == "." ? "" : path + "/";
    // Before any of them is kept: the lists of all directories above are held, too.
    entries_ += entries->size();
    for (const FileEntry& entry : *entries) bytes_ += prefix.size() + entry.name.size();
    if (entries_ > kMaxEntries) return std::unexpected(tooLarge(path, "more than 20000 entries"));
    if (bytes_ > kMaxPathBytes) return std::unexpected(tooLarge(path, "the paths of all entries have more than 8 MiB"));
    for (FileEntry& entry : *entries) {
      const std::string inner = prefix + entry.name;
      const bool directory = entry.type == "directory";
      now_.try_emplace(inner, Seen{std::move(entry.type), entry.size, entry.modified, entry.mode});
      if (!directory || depth >= kMaxDepth) continue;
      if (auto below = list(session, inner, depth + 1); !below) return below;
    }
    return {};
  }
  /// Counts the memory of both lists for the caller.
  Result<void> count() {
    const std::uint64_t needed = 2 * (bytes_ + entries_ * kEntryBytes);
    if (!holds_.bytes || needed <= counted_) return {};
    if (!holds_.bytes->add(needed - counted_))
      return std::unexpected(tooLarge(path_, "requests, responses and watches of this token use too much memory"));
    counted_ = needed;
    return {};
  }

  Next sendDifferences(std::string& piece, bool continued) {
    if (continued && Clock::now() - listed_at_ > kReadTime + std::chrono::seconds(sent_ / kLeastRate))
      return fail(piece, "the changes were not read in time");
    while (piece.size() < kPiece && comparing_) {
      appendDifference(piece);
      comparing_ = before_at_ != before_.end() || now_at_ != now_.end();
    }
    sent_ += piece.size();
    if (!comparing_) before_ = std::exchange(now_, {});
    if (!piece.empty()) return slow_.data();
    if (continued) return {State::wait, kShortestRound};  // a change meanwhile may have been missed
    slow_.pause(piece);
    return {State::wait, isWatched() ? kLookAgain : milliseconds(500)};
  }
  /// Compares the next path of both lists.
  void appendDifference(std::string& piece) {
    if (before_at_ == before_.end() && now_at_ == now_.end()) return;
    const bool has_before = before_at_ != before_.end(), has_now = now_at_ != now_.end();
    const int order = !has_before ? 1 : !has_now ? -1 : before_at_->first.compare(now_at_->first);
    if (order < 0) {
      Json data{{"type", before_at_->second.type}};
      setBytes(data, "path", before_at_->first);
      piece += sseEvent("deleted", "", data);
    } else if (const Seen& seen = now_at_->second;
               order > 0 || (before_at_->second != seen && seen.type != "directory")) {
      Json data{{"type", seen.type}, {"size", seen.size}};
      setBytes(data, "path", now_at_->first);
      piece += sseEvent(order > 0 ? "created" : "modified", "", data);
    }
    if (order <= 0) ++before_at_;
    if (order >= 0) ++now_at_;
  }

  App& app_;
  service::SandboxPointer sandbox_;
  std::string path_;
  WatchHolds holds_;
  std::uint64_t counted_ = 0;  ///< in holds_.bytes
  bool started_ = false;
  Entries before_, now_;
  std::size_t entries_ = 0, bytes_ = 0;  ///< of the newest list; bytes of paths
  std::size_t directories_ = 0;          ///< that are watched; more than kMaxWatches: not all are
  bool comparing_ = false;
  Entries::const_iterator before_at_, now_at_;
  std::uint64_t sent_ = 0;  ///< of the differences
  Clock::time_point listed_at_;
  std::function<void()> wake_;
  Pace slow_;
};

/// Passes another source on as long as the caller's token is valid.
class TokenSource final : public http::Source {
 public:
  TokenSource(App& app, std::string token, std::shared_ptr<http::Source> source, bool events)
      : app_(app), token_(std::move(token)), source_(std::move(source)), events_(events) {}

  void onStart(std::function<void()> wake) override { source_->onStart(std::move(wake)); }
  [[nodiscard]] http::Lane lane() const override { return source_->lane(); }
  [[nodiscard]] bool mayEndEarly() const override { return source_->mayEndEarly(); }
  Next next(std::string& piece) override {
    if (const auto now = Clock::now(); now - checked_at_ >= kCheckToken) {
      checked_at_ = now;
      if (!app_.isValid(token_)) {
        if (!events_) return {State::abort};
        piece = sseEvent("error", "", {{"reason", "the token was revoked or has expired"}});
        return {State::end};
      }
    }
    Next next = source_->next(piece);
    if (next.state == State::wait) next.pause = std::min(next.pause, kCheckToken);
    return next;
  }

 private:
  static constexpr milliseconds kCheckToken{2000};
  App& app_;
  std::string token_;
  std::shared_ptr<http::Source> source_;
  bool events_;
  Clock::time_point checked_at_ = Clock::now();
};

}  // namespace

std::string sseEvent(std::string_view type, std::string_view id, const Json& data) {
  std::string text = "event: " + std::string(type) + "\n";
  if (!id.empty()) text += "id: " + std::string(id) + "\n";
  return text + "data: " + writeJson(data) + "\n\n";
}

std::shared_ptr<http::Source> outputSource(OutputOptions options, bool follow, std::string first) {
  return std::make_shared<OutputSource>(std::move(options), follow, std::move(first));
}

std::shared_ptr<http::Source> eventSource(App& app, service::Principal caller, std::uint64_t after,
                                          std::shared_ptr<void> slot) {
  return std::make_shared<EventSource>(app, std::move(caller), after, std::move(slot));
}

std::shared_ptr<http::Source> auditSource(App& app, service::Principal caller, std::shared_ptr<void> slot) {
  return std::make_shared<AuditSource>(app, std::move(caller), std::move(slot));
}

std::shared_ptr<http::Source> watchSource(App& app, service::SandboxPointer sandbox, std::string path,
                                          WatchHolds holds) {
  return std::make_shared<WatchSource>(app, std::move(sandbox), std::move(path), std::move(holds));
}

void endWithToken(App& app, const service::Principal& caller, http::Response& response) {
  if (caller.owner) return;
  if (auto* socket = std::get_if<http::SocketBody>(&response.body))
    socket->may_continue = [&app, id = caller.id] { return app.isValid(id); };
  auto* source = std::get_if<std::shared_ptr<http::Source>>(&response.body);
  if (source == nullptr) return;
  const bool events = !response.headers.empty() && response.headers.front().second == "text/event-stream";
  *source = std::make_shared<TokenSource>(app, caller.id, std::move(*source), events);
}

http::Response streamResponse(std::shared_ptr<http::Source> source) {
  http::Response response{.body = std::move(source)};
  response.headers = {
      {"Content-Type", "text/event-stream"}, {"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  return response;
}

}  // namespace caisson::server
