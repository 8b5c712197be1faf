// Every request of a session that a server saw is in the audit log, whichever process made it and however it ended.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <sstream>
#include <thread>
#include <tuple>

#include "network/network.h"
#include "support/conforms.h"
#include "support/processes.h"

namespace caisson::test {
namespace {

using Record = nlohmann::json;
using std::chrono::seconds;

enum class Actor { foreground, background, left_behind };
enum class End { exit, kill, destroy, ttl, supervisor_killed };

class SessionAudit : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
    marker_ = "audit-" + std::to_string(getpid()) + "-" + files.path();
  }
  void TearDown() override {
    client_.reset();
    for (const pid_t pid : liveProcesses(marker_)) signalProcess(sandboxInit(pid), SIGKILL);
    if (!home_.empty()) caisson({"clean", "--all"});
  }

  [[nodiscard]] RunOptions options() const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    how.timeout = seconds(20);
    return how;
  }
  RunOutput caisson(const std::vector<std::string>& args) const { return runCaisson(args, options()); }

  void create(const std::string& ttl = "1h") {
    const std::string policy = policyFor({"*.wild.example.org"}, "allowed_ports = [80, 5432]");
    const RunOutput made = caisson({"session", "create", "--policy", policy, "--workspace", ":none", "--ttl", ttl});
    ASSERT_EQ(made.exit_status, 0) << made.describe();
    id_ = made.out.substr(0, made.out.find('\n'));
  }
  /// Starts a script in the session without waiting for it.
  void start(Actor actor, const std::string& script) {
    // Without the final `:`, bash would exec the script's last program and lose its marker.
    const std::vector<std::string> command{"bash", "-c", script + "; :", marker_};
    std::vector<std::string> args{"session", "exec", id_};
    if (actor == Actor::background) args.emplace_back("--background");
    args.emplace_back("--");
    if (actor == Actor::left_behind) {
      args.insert(args.end(), {"sh", "-c", "setsid \"$@\" > /dev/null 2>&1 < /dev/null &", "sh"});
    }
    args.insert(args.end(), command.begin(), command.end());
    if (actor == Actor::foreground) {
      args.insert(args.begin(), caissonBinary());
      client_ = std::make_unique<BackgroundProgram>(args, options());
      return;
    }
    const RunOutput started = caisson(args);
    ASSERT_EQ(started.exit_status, 0) << started.describe();
  }
  static bool serverSaw(const std::string& host) { return contains(requestsSeen(), " " + host + " "); }
  /// The records of allowed requests for this host; with `event` "proxy_opened" also of those that are still open.
  [[nodiscard]] std::vector<Record> records(const std::string& host, const std::string& event = "proxy_request") const {
    std::istringstream lines(caisson({"audit", "show", "--json", "--event", event}).out);
    std::vector<Record> found;
    for (std::string line; std::getline(lines, line);) {
      const Record record = Record::parse(line, nullptr, false);
      if (!record.is_object() || record["data"].value("host", "") != host) continue;
      const std::string operation = record["data"].value("operation", "");
      if ((operation == "connect" || operation == "open") && record["data"].value("allowed", false)) {
        found.push_back(record["data"]);
      }
    }
    return found;
  }
  [[nodiscard]] bool recorded(const std::string& host) const { return !records(host).empty(); }

  std::string home_, id_, marker_;
  std::unique_ptr<BackgroundProgram> client_;
};

TEST_F(SessionAudit, BackgroundRequestIsRecordedWhileCommandRuns) {
  CONFORMS("R-NETWORK-9");
  create();
  start(Actor::background, "curl -sS http://bg-runs.wild.example.org/x; sleep 60");
  ASSERT_TRUE(eventually([&] { return serverSaw("bg-runs.wild.example.org"); }));
  EXPECT_TRUE(eventually([&] { return recorded("bg-runs.wild.example.org"); }));
}

TEST_F(SessionAudit, LeftBehindRequestIsRecordedWhileProcessRuns) {
  create();
  start(Actor::left_behind, "curl -sS http://left-runs.wild.example.org/x; sleep 60");
  ASSERT_TRUE(eventually([&] { return serverSaw("left-runs.wild.example.org"); }));
  EXPECT_TRUE(eventually([&] { return recorded("left-runs.wild.example.org"); }));
}

TEST_F(SessionAudit, ManyBackgroundRequestsAreAllRecorded) {
  CONFORMS("R-NETWORK-9");
  create();
  const std::string host = "many.wild.example.org";
  start(Actor::background, "for i in $(seq 100); do curl -sS http://" + host + "/$i; done; sleep 60");
  ASSERT_TRUE(eventually([&] { return contains(requestsSeen(), " " + host + " /100 "); }, seconds(20)));
  EXPECT_TRUE(eventually([&] { return records(host).size() >= 100; })) << records(host).size() << " of 100 are there";
}

TEST_F(SessionAudit, ByteCountsAgreeForEveryActor) {
  create();
  const std::vector<std::pair<Actor, std::string>> actors{{Actor::foreground, "bytes-fg.wild.example.org"},
                                                          {Actor::background, "bytes-bg.wild.example.org"},
                                                          {Actor::left_behind, "bytes-left.wild.example.org"}};
  for (const auto& [actor, host] : actors) {
    SCOPED_TRACE(host);
    start(actor, "exec 3<>/dev/tcp/" + host +
                     "/5432; head -c 8 <&3; head -c 5000 /dev/zero >&3; head -c 5000 <&3 > /dev/null");
    ASSERT_TRUE(eventually([&] { return recorded(host) && records(host).back().value("received_bytes", 0) > 0; }));
    const auto found = records(host);
    EXPECT_EQ(found.back()["sent_bytes"], 5000) << found.back();
    EXPECT_EQ(found.back()["received_bytes"], 5008) << found.back();
  }
}

/// While another writer holds the log, nothing can be recorded.
class HeldLog {
 public:
  explicit HeldLog(const std::string& home)
      : head_(::open((home + "/audit/head").c_str(), O_RDWR | O_CLOEXEC)), held_(::flock(head_, LOCK_EX) == 0) {}
  ~HeldLog() { ::close(head_); }
  HeldLog(const HeldLog&) = delete;
  HeldLog& operator=(const HeldLog&) = delete;
  [[nodiscard]] bool held() const { return held_; }

 private:
  const int head_;
  const bool held_;
};

std::size_t countOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_F(SessionAudit, NoRequestLeavesBeforeItsConnectionIsRecorded) {
  CONFORMS("R-NETWORK-9");
  create();
  const std::string host = "waits.wild.example.org";
  start(Actor::background, "while :; do curl -sS http://" + host + "/x; done");
  const auto seen = [&] { return countOf(requestsSeen(), " " + host + " "); };
  const auto unchangedFor = [&](std::chrono::milliseconds time) {
    const std::size_t before = seen();
    std::this_thread::sleep_for(time);
    return seen() == before;
  };
  ASSERT_TRUE(eventually([&] { return seen() > 0; }));
  std::size_t before = 0;
  {
    const HeldLog log(home_);
    ASSERT_TRUE(log.held());
    // Connections that were already recorded may still send their request.
    ASSERT_TRUE(eventually([&] { return unchangedFor(std::chrono::milliseconds(500)); }));
    EXPECT_TRUE(unchangedFor(std::chrono::seconds(1)));
    before = seen();
  }
  EXPECT_TRUE(eventually([&] { return seen() > before; })) << "the connection does not go on after it was recorded";
}

class SessionAuditEnd : public SessionAudit, public testing::WithParamInterface<std::tuple<Actor, End>> {
 protected:
  /// Ends the process that made the requests.
  void endActor(Actor actor, End end) {
    if (end == End::destroy) {
      const RunOutput destroyed = caisson({"session", "destroy", id_});
      EXPECT_EQ(destroyed.exit_status, 0) << destroyed.describe();
    }
    if (end == End::supervisor_killed) {
      const pid_t supervisor = sessionSupervisor(id_);
      ASSERT_GT(supervisor, 1) << "no process supervises the session";
      ASSERT_TRUE(signalProcess(supervisor, SIGKILL));
    }
    if (end != End::kill) return;
    if (actor == Actor::foreground) client_->signal(SIGTERM);
    if (actor == Actor::background) {
      const RunOutput stopped = caisson({"session", "stop", id_, "1"});
      EXPECT_EQ(stopped.exit_status, 0) << stopped.describe();
    }
    if (actor == Actor::left_behind) {
      ASSERT_TRUE(signalProcess(firstLiveProcess(marker_), SIGKILL));
    }
  }
};

TEST_P(SessionAuditEnd, KeepsRecordOfEveryRequest) {
  CONFORMS("R-NETWORK-9");
  const auto [actor, end] = GetParam();
  create(end == End::ttl ? "3s" : "1h");
  std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  name = name.substr(name.find('/') + 1);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const std::string done = "done-" + name + ".wild.example.org";
  const std::string open = "open-" + name + ".wild.example.org";
  const std::string first = "curl -sS http://" + done + "/x; ";
  // The second request is still open when the process ends.
  start(actor,
        end == End::exit ? first + "curl -sS http://" + open + "/x" : first + "curl -sS http://" + open + "/slow");
  ASSERT_TRUE(eventually([&] { return serverSaw(done) && serverSaw(open); }));
  endActor(actor, end);
  if (HasFatalFailure()) return;
  EXPECT_TRUE(eventually([&] { return liveProcesses(marker_).empty(); }, seconds(9))) << "the process has not ended";
  EXPECT_TRUE(eventually([&] { return recorded(done); })) << "a request that was answered is lost";
  EXPECT_TRUE(eventually([&] { return !records(open, "proxy_opened").empty(); })) << "an open request is lost";
}

std::string paramName(const testing::TestParamInfo<std::tuple<Actor, End>>& info) {
  constexpr const char* kActors[] = {"Foreground", "Background", "LeftBehind"};
  constexpr const char* kEnds[] = {"Exit", "Kill", "Destroy", "Ttl", "SupervisorKilled"};
  return std::string(kActors[static_cast<int>(std::get<0>(info.param))]) +
         kEnds[static_cast<int>(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(AnyActor, SessionAuditEnd,
                         testing::Combine(testing::Values(Actor::foreground, Actor::background, Actor::left_behind),
                                          testing::Values(End::exit, End::kill, End::destroy, End::ttl,
                                                          End::supervisor_killed)),
                         paramName);

}  // namespace
}  // namespace caisson::test
