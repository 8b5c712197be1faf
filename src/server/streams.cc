#include "server/streams.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>

#include "audit/reader.h"
#include "base/utf8.h"
#include "server/describe.h"

namespace caisson::server {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = std::size_t{32} << 10U;
constexpr milliseconds kShortestPause{5};
constexpr milliseconds kLongestPause{250};
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
    pause_ = std::min(pause_ * 2, kLongestPause);
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
    if (info) piece += sseEvent("exit", id(), describeCommand(*info));
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
        app_.events().next(position_, 64, [this](const std::string& owner) { return caller_.sees(owner); });
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
    // The first pass only finds the end: old records are in GET /v1/audit.
    const auto read = reader_->read([&](audit::Entry&& entry, std::string_view) {
      if (!first && pending_.size() < (std::size_t{4} << 20U) && isVisible(entry)) {
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
  bool isVisible(const audit::Entry& entry) {
    if (caller_.owner || caller_.may(service::Scope::admin)) return true;
    return !entry.sandbox.empty() && app_.sandboxes().find(caller_, entry.sandbox).has_value();
  }

  App& app_;
  service::Principal caller_;
  std::shared_ptr<void> slot_;
  std::optional<audit::Reader> reader_;
  std::string pending_;
  Pace pace_;
};

/// Compares the tree with what it was: what a payload does to links or mounts cannot mislead that. Watches only tell
/// when to compare. A payload of the same user can use up all of them; then the tree is compared twice a second.
class WatchSource final : public http::Source {
 public:
  WatchSource(App& app, service::SandboxPointer sandbox, std::string path, std::shared_ptr<void> slot)
      : app_(app), sandbox_(std::move(sandbox)), path_(std::move(path)), slot_(std::move(slot)) {}
  ~WatchSource() override { app_.watcher().forget(this); }
  WatchSource(const WatchSource&) = delete;
  WatchSource& operator=(const WatchSource&) = delete;

  void onStart(std::function<void()> wake) override { wake_ = std::move(wake); }
  Next next(std::string& piece) override {
    // A change wakes this at once; a program that changes files in a loop must not make us list them all the time.
    if (const auto left = listed_at_ + kShortestRound - Clock::now(); started_ && left > Clock::duration::zero())
      return {State::wait, std::chrono::ceil<milliseconds>(left)};
    std::map<std::string, FileEntry> now;
    directories_ = 0;
    const auto listed =
        app_.sandboxes().with(*sandbox_, [&](Session& session) { return list(session, path_, now, 0); });
    listed_at_ = Clock::now();
    if (!listed) {
      piece += sseEvent("error", "", {{"reason", listed.error().message()}});
      return {State::end};
    }
    if (started_) compare(now, piece);
    const bool watched = directories_ <= kMaxWatches;
    if (!started_) piece += sseEvent("ready", "", {{"entries", now.size()}, {"polling", !watched}});
    started_ = true;
    before_ = std::move(now);
    if (!piece.empty()) return slow_.data();
    slow_.pause(piece);
    return {State::wait, watched ? kLookAgain : milliseconds(500)};
  }
  [[nodiscard]] http::Lane lane() const override { return http::Lane::control; }  // it may start the sandbox

 private:
  static constexpr std::size_t kMaxEntries = 20'000;
  static constexpr int kMaxDepth = 32;
  static constexpr std::size_t kMaxWatches = 1024;
  static constexpr milliseconds kShortestRound{100};

  /// Watches a directory before it is listed.
  void watch(int directory) {
    if (directories_ >= kMaxWatches || !app_.watcher().watch(this, directory, wake_)) directories_ = kMaxWatches;
    ++directories_;
  }
  Result<void> list(Session& session, const std::string& path, std::map<std::string, FileEntry>& into, int depth) {
    auto entries = session.listFiles(path, [this](int directory) { watch(directory); });
    if (!entries) {
      if (depth == 0 || entries.error().sys_errno == EFBIG) return std::unexpected(entries.error());
      return {};  // removed meanwhile
    }
    for (FileEntry& entry : *entries) {
      if (into.size() >= kMaxEntries)
        return std::unexpected(Error{.stage = Stage::usage,
                                     .call = "watch",
                                     .object = path,
                                     .reason = "more than 20000 entries",
                                     .hint = "watch a smaller directory"});
      const std::string inner = path.empty() || path == "." ? entry.name : path + "/" + entry.name;
      const bool directory = entry.type == "directory";
      into.emplace(inner, std::move(entry));
      if (!directory || depth >= kMaxDepth) continue;
      if (auto below = list(session, inner, into, depth + 1); !below) return below;
    }
    return {};
  }
  void compare(const std::map<std::string, FileEntry>& now, std::string& piece) const {
    for (const auto& [path, entry] : now) {
      const auto old = before_.find(path);
      const bool same = old != before_.end() && old->second.size == entry.size && old->second.type == entry.type &&
                        old->second.modified == entry.modified && old->second.mode == entry.mode;
      if (same || (old != before_.end() && entry.type == "directory")) continue;
      piece += sseEvent(old == before_.end() ? "created" : "modified", "",
                        {{"path", path}, {"type", entry.type}, {"size", entry.size}});
    }
    for (const auto& [path, entry] : before_)
      if (!now.contains(path)) piece += sseEvent("deleted", "", {{"path", path}, {"type", entry.type}});
  }

  App& app_;
  service::SandboxPointer sandbox_;
  std::string path_;
  std::shared_ptr<void> slot_;
  bool started_ = false;
  std::map<std::string, FileEntry> before_;
  std::size_t directories_ = 0;  ///< that are watched; more than kMaxWatches: not all are
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
                                          std::shared_ptr<void> slot) {
  return std::make_shared<WatchSource>(app, std::move(sandbox), std::move(path), std::move(slot));
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
