// A session persists: its files survive commands, processes and the death of its sandbox; every command gets all
// layers.
#include "functional/session.h"
#include "support/conforms.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <sstream>
#include <thread>

namespace caisson::test {
namespace {

using Sessions = SessionTest;

pid_t initOf(const std::string& home, const std::string& id) {
  const auto json = nlohmann::json::parse(readFile(home + "/sessions/" + id + "/init.json"));
  return json["init"]["pid"].get<pid_t>();
}

TEST_F(Sessions, KeepFilesBetweenCommandsAndTheRealDirectoryUnchanged) {
  CONFORMS("R-SESSION-1");
  workspace.write("a", "real\n");
  Session session = create();
  EXPECT_EQ(output(session, "cat a; echo changed > a; echo new > b; rm -f c"), "real\n");
  EXPECT_EQ(output(session, "cat a b"), "changed\nnew\n");
  EXPECT_EQ(readFile(workspace / "a"), "real\n");
  EXPECT_FALSE(exists(workspace / "b"));
}

TEST_F(Sessions, KeepFilesWhenTheSandboxDies) {
  CONFORMS("R-SESSION-18");
  Session session = create();
  output(session, "echo kept > file; echo lost > /tmp/file");
  ASSERT_EQ(::kill(initOf(home_path, session.id()), SIGKILL), 0);
  EXPECT_EQ(output(session, "cat file; ls /tmp"), "kept\n");
  auto other = store->find(session.id());
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(output(*other, "cat file"), "kept\n");
}

/// The supervisor answers sysinfo(2) for them.
TEST_F(Sessions, ShowCommandsTheMemoryLimit) {
  Session session = create();
  const std::string script = "echo $(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE) >> 20))";
  EXPECT_EQ(output(session, script), "512\n");
  EXPECT_EQ(output(session, script), "512\n");
}

TEST_F(Sessions, AreUsedByAnyProcessOfTheUserWithoutADaemon) {
  CONFORMS("R-LEVEL-23");
  const RunOutput made = cli({"create", "--name", "shared"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.size() - 1);
  EXPECT_EQ(cli({"exec", "shared", "--", "sh", "-c", "echo x > f"}).exit_status, 0);
  EXPECT_EQ(cli({"exec", id, "--", "cat", "f"}).out, "x\n");
  auto session = store->find("shared");
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_EQ(session->id(), id);
  EXPECT_EQ(output(*session, "cat f"), "x\n");
  EXPECT_NE(cli({"list"}).out.find(id), std::string::npos);
  EXPECT_EQ(cli({"destroy", "shared"}).exit_status, 0);
  EXPECT_EQ(cli({"exec", id, "--", "true"}).exit_status, 125);
}

TEST_F(Sessions, GiveTheCommandsOwnStatusAndStreams) {
  Session session = create();
  EXPECT_EQ(exitStatus(exec(session, "exit 7")), 7);
  EXPECT_EQ(exitStatus(exec(session, "kill -9 $$")), 128 + 9);
  auto missing = session.exec({.command = {"no-such-program"}});
  ASSERT_TRUE(missing) << missing.error().message();
  EXPECT_EQ(exitStatus(*missing), 127);
  auto fed = session.exec({.command = {"cat"}, .input = std::string("a\0b", 3)});
  ASSERT_TRUE(fed);
  EXPECT_EQ(fed->out.data, std::string("a\0b", 3));
  const RunResult both = exec(session, "echo out; echo err >&2");
  EXPECT_EQ(both.out.data, "out\n");
  EXPECT_EQ(both.err.data, "err\n");
  std::string seen;
  auto streamed = session.exec({.command = {"sh", "-c", "echo one; echo two"},
                                .on_output = [&](OutputStreamKind, std::string_view piece) { seen += piece; }});
  ASSERT_TRUE(streamed);
  EXPECT_EQ(seen, "one\ntwo\n");
}

TEST_F(Sessions, KillACommandWithItsChildrenAtItsTimeoutAndStayUsable) {
  Session session = create();
  const auto begin = std::chrono::steady_clock::now();
  auto result = session.exec({.command = {"sh", "-c", "sleep 61 & sleep 62"}, .timeout_seconds = 0.5});
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->limit, Limit::time);
  EXPECT_EQ(exitStatus(*result), 124);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(output(session, "ps ax | grep -c '[s]leep 6' || true"), "0\n");
}

TEST_F(Sessions, LeaveWhatACommandStartedRunning) {
  Session session = create();
  output(session, "setsid sleep 1000 >/dev/null 2>&1 & echo $! > pid");
  EXPECT_EQ(output(session, "kill -0 $(cat pid) && echo alive"), "alive\n");
}

TEST_F(Sessions, ApplyEveryLayerToEachCommand) {
  CONFORMS("R-LEVEL-11", "R-LEVEL-12");
  Session session = create();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(output(session, "grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status | cut -f2 | paste -sd' '"),
              "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 1 2\n");
    std::istringstream spaces(
        output(session, "for n in user pid mnt net ipc uts cgroup; do readlink /proc/self/ns/$n; done"));
    int count = 0;
    for (std::string inside; std::getline(spaces, inside); ++count) {
      const std::string name = inside.substr(0, inside.find(':'));
      EXPECT_NE(inside + "\n", runProgram({"readlink", "/proc/self/ns/" + name}).out) << "the host's";
    }
    EXPECT_EQ(count, 7);
    EXPECT_EQ(output(session,
                     "touch /usr/x 2>/dev/null || echo refused; ls /proc/1 2>/dev/null || echo hidden; "
                     "unshare -U true 2>/dev/null || echo denied; ulimit -n; ls /proc/self/fd | wc -l"),
              "refused\nhidden\ndenied\n1024\n4\n");
    EXPECT_EQ(exec(session, "true").layers["self_test"], "on");
  }
}

TEST_F(Sessions, AreListedWithTheirMetadata) {
  CONFORMS("R-SESSION-13");
  SessionOptions named = options();
  named.name = "named";
  auto session = store->create(named);
  ASSERT_TRUE(session) << session.error().message();
  const auto listed = cli({"list", "--json"}).json()["sessions"];
  ASSERT_EQ(listed.size(), 1U) << listed;
  EXPECT_EQ(listed[0]["id"], session->id());
  EXPECT_EQ(listed[0]["name"], "named");
  EXPECT_EQ(listed[0]["workspace"], workspace.path());
  EXPECT_EQ(listed[0]["ttl_seconds"], 3600) << "the default";
  EXPECT_NEAR(listed[0]["expires_in"].get<double>(), 3600, 60);
}

/// What cannot be seen in /proc: a directory that only Landlock keeps from being read. In the background as well.
TEST_F(Sessions, ApplyLandlockToEachCommand) {
  CONFORMS("R-LEVEL-11");
  const std::string file =
      workspace.write("wo.toml", "[[filesystem.tmpfs]]\npath = \"/logs\"\nsize = \"1M\"\naccess = \"wo\"\n");
  const RunOutput made = cli({"create", "--policy", file});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  auto session = store->find(made.out.substr(0, made.out.size() - 1));
  ASSERT_TRUE(session) << session.error().message();
  const std::string script = "echo x >> /logs/log && (cat /logs/log || grep -c '^Seccomp:.2' /proc/self/status)";
  for (int round = 0; round < 2; ++round) EXPECT_EQ(output(*session, script), "1\n");
  auto started = session->start({.command = {"sh", "-c", script}});
  ASSERT_TRUE(started) << started.error().message();
  const auto ended = session->wait(*started, 20);
  ASSERT_TRUE(ended) << ended.error().message();
  EXPECT_EQ(cli({"logs", session->id(), std::to_string(*started)}).out, "1\n");
}

TEST_F(Sessions, EndWhenTheirTimeIsOver) {
  CONFORMS("R-SESSION-3");
  SessionOptions wanted = options();
  wanted.ttl_seconds = 1;
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  const pid_t init = initOf(home_path, session->id());
  ASSERT_TRUE(session->renew(2));
  sleepFor(std::chrono::milliseconds(1200));
  EXPECT_TRUE(store->find(session->id()));
  EXPECT_TRUE(eventually([&] { return !store->find(session->id()); }));
  EXPECT_TRUE(eventually([&] {
    (void)store->list();  // removes it and reaps our child
    return ::kill(init, 0) != 0;
  }));
  EXPECT_FALSE(exists(home_path + "/sessions/" + session->id()));
  EXPECT_FALSE(exists(home_path + "/stores/" + session->id()));
}

TEST_F(Sessions, RejectInvalidOptions) {
  for (const std::string& bad :
       std::vector<std::string>{"", "..", "../x", "a/b", "a\nb", ".hidden", "-x", "cs-0", std::string(65, 'a'),
                                "cs-00000000000000000000000000000000", std::string("a\0b", 3)}) {
    EXPECT_FALSE(store->find(bad)) << bad;
    EXPECT_FALSE(store->destroy(bad)) << bad;
  }
  SessionOptions wanted = options();
  wanted.name = "a/b";
  EXPECT_FALSE(store->create(wanted));
  wanted.name = "twice";
  ASSERT_TRUE(store->create(wanted));
  EXPECT_FALSE(store->create(wanted)) << "the name is taken";
  wanted.name.clear();
  wanted.ttl_seconds = -1;
  EXPECT_FALSE(store->create(wanted));
  wanted.ttl_seconds = 60;
  EXPECT_TRUE(wanted.policy.set("filesystem.workspace.mode", "rw"));
  EXPECT_FALSE(store->create(wanted));
  SessionOptions open_home = options();
  EXPECT_TRUE(open_home.policy.set("filesystem.workspace.path", home.path()));
  EXPECT_FALSE(store->create(open_home)) << "a sandbox would see the sockets of all sessions";
}

TEST_F(Sessions, AreRefusedWhenTheirMetadataIsDamagedOrOfANewerFormatAndCanStillBeDestroyed) {
  CONFORMS("R-SESSION-2");
  Session session = create();
  const std::string meta = home_path + "/sessions/" + session.id() + "/meta.json";
  const std::string good = readFile(meta);
  std::string newer = good;
  newer.replace(newer.find("\"format\":1"), 10, "\"format\":2");
  for (const std::string& text : {std::string("{"), std::string(), newer}) {
    FILE* file = std::fopen(meta.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    const auto found = store->find(session.id());
    ASSERT_FALSE(found);
    const auto infos = store->list();
    ASSERT_TRUE(infos);
    ASSERT_EQ(infos->size(), 1U);
    EXPECT_FALSE(infos->front().problem.empty());
  }
  EXPECT_TRUE(store->destroy(session.id()));
}

/// Files and processes of one are not visible in the others, which work at the same time.
TEST_F(Sessions, ManyCanBeUsedAtOnce) {
  CONFORMS("R-SESSION-5");
  constexpr int kSessions = 8;
  std::vector<std::optional<Session>> sessions(kSessions);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < kSessions; ++i) {
    threads.emplace_back([&, i] {
      auto made = store->create(options());
      if (!made) return;
      sessions[static_cast<std::size_t>(i)].emplace(*std::move(made));
      Session& own = *sessions[static_cast<std::size_t>(i)];
      const std::string word = "own" + std::to_string(i);
      for (int round = 0; round < 3; ++round) {
        auto result = own.exec({.command = {"sh", "-c",
                                            "echo " + word + " > " + word + "; echo x > /tmp/" + word +
                                                "; ls /tmp /workspace; set -- /proc/[0-9]*; echo $#"}});
        if (result && result->out.data == "/tmp:\n" + word + "\n\n/workspace:\n" + word + "\n1\n") ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kSessions * 3);
  EXPECT_EQ(store->list()->size(), static_cast<std::size_t>(kSessions));
  for (int i = 0; i < kSessions; ++i) {
    ASSERT_TRUE(sessions[static_cast<std::size_t>(i)]);
    const std::string word = "own" + std::to_string(i);
    EXPECT_EQ(output(*sessions[static_cast<std::size_t>(i)], "cat own*"), word + "\n");
  }
}

TEST_F(Sessions, CanBeUsedByManyAtOnce) {
  CONFORMS("R-SESSION-5");
  Session session = create();
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      auto own = store->find(session.id());
      if (!own) return;
      for (int round = 0; round < 10; ++round) {
        const std::string word = std::to_string(i * 100 + round);
        auto result = own->exec({.command = {"sh", "-c", "echo " + word + " > f" + word + "; cat f" + word}});
        if (result && result->out.data == word + "\n") ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
}

TEST_F(Sessions, KillTheCommandOfACallerThatDied) {
  Session session = create();
  {
    BackgroundProgram caller({caissonBinary(), "session", "exec", session.id(), "--", "sleep", "4711"});
    EXPECT_TRUE(eventually([&] { return output(session, "ps ax | grep -c '[s]leep 4711' || true") == "1\n"; }));
    caller.signal(SIGKILL);
    EXPECT_TRUE(caller.wait(std::chrono::seconds(5)));
  }
  EXPECT_TRUE(eventually([&] { return output(session, "ps ax | grep -c '[s]leep 4711' || true") == "0\n"; }));
}

}  // namespace
}  // namespace caisson::test
