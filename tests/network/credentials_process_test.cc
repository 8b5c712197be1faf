// Where the secret of a credential is stored, and where it is not: the broker and the processes around it.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "network/credentials.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Broker = CredentialsTest;

std::string of(pid_t pid, const std::string& file) { return readFile("/proc/" + std::to_string(pid) + "/" + file); }

std::string userOf(pid_t pid) {
  const std::string status = of(pid, "status");
  const std::size_t at = status.find("Uid:\t") + 5;
  return status.substr(at, status.find('\t', at) - at);
}

TEST_F(Broker, SecretIsNotVisibleInside) {
  CONFORMS("R-NETWORK-23");
  const RunOutput output = shell(
      "",
      "cat /proc/*/environ /proc/*/cmdline /proc/*/maps 2>/dev/null | tr '\\0' '\\n'; env; cat /etc/caisson/*;"
      " grep -rs s3cr3t-8d1f /etc /run /tmp /home /dev/shm; ls -l /proc/self/fd; curl -sS https://example.org/inside",
      {});
  ASSERT_FALSE(contains(output.out + output.err, kSecret)) << "without a credential";
  const std::string network = credential("example.org") + "[environment]\nmode = \"inherit\"\n";
  const RunOutput with =
      shell(network,
            "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env; cat /etc/caisson/*;"
            " curl -sS https://example.org/inside");
  EXPECT_EQ(with.exit_status, 0) << with.describe();
  EXPECT_TRUE(arrivedWithSecret("/inside")) << seen();
  EXPECT_FALSE(contains(with.out + with.err, kSecret))
      << "mode inherit hands the caller's variables on, but not this one";
  EXPECT_FALSE(contains(with.out, "PRIVATE KEY"));
}

/// Only the egress process is connected to the broker; nothing inside can open another connection.
TEST_F(Broker, NoSocketInsideReachesIt) {
  const RunOutput output = shell(credential("example.org"),
                                 "curl -sS https://example.org/once >/dev/null; tail -n +2 /proc/net/unix | wc -l; "
                                 "ls /proc/self/fd | tr '\\n' ' '");
  EXPECT_TRUE(output.out.starts_with("0\n0 1 2 ")) << output.describe();
}

TEST_F(Broker, OutputAndStoredFilesDoNotContainTheSecret) {
  const std::string network = credential("example.org", "name = \"api\"");
  const RunOutput output = shell(network, "curl -sS https://example.org/told; curl -sS https://evil.test/", {"--json"});
  ASSERT_TRUE(arrivedWithSecret("/told")) << seen() << output.describe();
  const std::string file = policy(network);
  const RunOutput plan = caisson({"plan", "--policy", file, "--workspace", ":none", "--json", "--", "true"});
  EXPECT_EQ(plan.exit_status, 0) << plan.describe();
  const RunOutput explained = caisson({"policy", "explain", file});
  EXPECT_TRUE(contains(explained.out, "api: Authorization for example.org:443, from variable TOKEN")) << explained.out;
  const RunOutput log = caisson({"audit", "show", "--json"});
  EXPECT_TRUE(contains(log.out, "credential_used")) << log.out;
  EXPECT_TRUE(contains(log.out, "api (Authorization)")) << log.out;
  for (const RunOutput* one : {&output, &plan, &explained, &log}) {
    EXPECT_FALSE(contains(one->out + one->err, kSecret)) << one->describe();
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home)) {
    if (!entry.is_regular_file()) continue;
    EXPECT_FALSE(contains(readFile(entry.path()), kSecret)) << entry.path();
  }
}

class LiveBroker : public Broker {
 protected:
  /// Starts `script` and finds its broker.
  void launch(const std::string& script) {
    const std::string file = policy(credential("example.org"));
    program_.emplace(std::vector<std::string>{caissonBinary(), "run", "--policy", file, "--workspace", ":none",
                                              "--result", files / "result", "--", "bash", "-c", script},
                     how());
    ASSERT_TRUE(eventually([&] { return processes("caisson-broker", program_->pid()).size() == 1; }));
    ASSERT_TRUE(eventually([&] { return processes("__egress", program_->pid()).size() == 1; }));
    broker_ = processes("caisson-broker", program_->pid()).front();
    sleepFor(std::chrono::milliseconds(300));
  }

  std::optional<BackgroundProgram> program_;
  pid_t broker_ = -1;
};

TEST_F(LiveBroker, IsConfinedAndHidden) {
  launch("sleep 60");
  const std::string status = of(broker_, "status");
  EXPECT_TRUE(contains(status, "Seccomp:\t2")) << status;
  EXPECT_TRUE(contains(status, "NoNewPrivs:\t1")) << status;
  EXPECT_TRUE(contains(status, "CapEff:\t0000000000000000")) << status;
  EXPECT_FALSE(contains(status, "Uid:\t0\t")) << status;
  EXPECT_TRUE(contains(of(broker_, "limits"), "Max core file size        0                    0"))
      << of(broker_, "limits");
  struct stat info{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(broker_) + "/mem").c_str(), &info), 0);
  EXPECT_NE(std::to_string(info.st_uid), userOf(broker_)) << "what may be dumped belongs to its process's user";
  if (::geteuid() == 0) return;  // root may read everything
  EXPECT_NE(::access(("/proc/" + std::to_string(broker_) + "/mem").c_str(), R_OK), 0);
}

/// As root: the broker, which holds the secrets, does not run as the same user as the program.
TEST_F(LiveBroker, RunsAsAnotherUserThanTheProgramWherePossible) {
  requireOrSkip(runsAsRoot(), "only root can give it a separate user");
  launch("exec sleep 4242");
  const pid_t egress = processes("__egress", program_->pid()).front();
  EXPECT_NE(userOf(broker_), "0");
  EXPECT_NE(userOf(broker_), userOf(egress)) << "the egress runs as the program's user";
}

TEST_F(LiveBroker, NoCaissonProcessShowsTheSecret) {
  launch("sleep 60");
  std::vector<pid_t> ours{program_->pid(), broker_, processes("__egress", program_->pid()).front()};
  for (const pid_t pid : ours) {
    for (const char* file : {"environ", "cmdline"}) {
      EXPECT_FALSE(contains(of(pid, file), kSecret)) << pid << " " << file << " " << of(pid, "cmdline");
    }
  }
}

/// Never connect without the broker: the request would reach the host without its credential.
TEST_F(LiveBroker, KillingItMakesItsHostsUnreachable) {
  launch(
      "curl -sS https://example.org/before; until curl -sSk https://www.example.org/now | grep -q now && "
      "[ -e /tmp/x ]; do touch /tmp/x; sleep 0.5; done; sleep 1; curl -sSk https://example.org/after; true");
  ASSERT_TRUE(eventually([] { return arrivedWithSecret("/before"); })) << seen();
  ::kill(broker_, SIGKILL);
  ASSERT_TRUE(program_->wait(std::chrono::seconds(30)));
  EXPECT_FALSE(contains(seen(), "/after")) << seen();
  EXPECT_TRUE(arrivedWithout("/now")) << "other hosts are as before: " << seen();
  const auto result = nlohmann::json::parse(readFile(files / "result"), nullptr, false);
  ASSERT_TRUE(result.is_object());
  EXPECT_TRUE(denied(result, "broker", "credential")) << result;
  EXPECT_TRUE(denied(result, "example.org:443", "connect")) << result;
}

TEST_F(LiveBroker, EndsWithTheRun) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    launch("sleep 60");
    program_->signal(signal);
    EXPECT_TRUE(eventually([&] {
      const std::string stat = of(broker_, "stat");
      return stat.empty() || contains(stat, ") Z");
    })) << signal;
    program_.reset();
  }
}

TEST_F(Broker, EverySandboxHasItsOwnAuthorityLimitedToItsHosts) {
  const std::string last =
      "awk '/BEGIN/ { text = \"\" } { text = text $0 \"\\n\" } END { printf \"%s\", text }' /etc/caisson/trust.pem";
  const std::string network = credential("example.org");
  const RunOutput text = shell(network, last + " | openssl x509 -noout -text");
  EXPECT_TRUE(contains(text.out, "CA:TRUE, pathlen:0")) << text.describe();
  EXPECT_TRUE(contains(text.out, "Name Constraints: critical")) << text.describe();
  EXPECT_TRUE(contains(text.out, "DNS:example.org")) << text.describe();
  EXPECT_TRUE(contains(text.out, "Excluded:")) << text.describe();
  EXPECT_TRUE(contains(text.out, "Certificate Sign") && !contains(text.out, "CRL Sign")) << text.describe();
  const RunOutput first = shell(network, last), second = shell(network, last);
  EXPECT_TRUE(contains(first.out, "BEGIN CERTIFICATE")) << first.describe();
  EXPECT_NE(first.out, second.out);
}

TEST_F(Broker, WithoutItsProgramCredentialsAreRefused) {
  const std::string alone = files / "caisson";
  std::filesystem::copy_file(caissonBinary(), alone);
  const RunOutput output = runProgram({alone, "run", "--policy", policy(credential("example.org")), "--workspace",
                                       ":none", "--", "curl", "-sS", "https://example.org/alone"},
                                      how());
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "not installed")) << output.describe();
  EXPECT_EQ(seen(), "");
}

TEST_F(Broker, ServesASessionUntilItsHostIsDenied) {
  const RunOutput made =
      caisson({"session", "create", "--policy", policy(credential("example.org")), "--workspace", ":none"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  RunOptions later = how();  // another caller, without the secret
  later.env.erase("TOKEN");
  later.unset = {"TOKEN"};
  const auto exec = [&](const std::string& script) {
    return runCaisson({"session", "exec", id, "--", "bash", "-c", script}, later);
  };
  const RunOutput used = exec("curl -sS https://example.org/session");
  EXPECT_TRUE(arrivedWithSecret("/session")) << seen() << used.describe();
  BackgroundProgram slow({caissonBinary(), "session", "exec", id, "--", "curl", "-sS", "https://example.org/slow"},
                         later);
  EXPECT_TRUE(eventually([] { return arrivedWithSecret("/slow"); })) << seen();
  EXPECT_EQ(runCaisson({"session", "network", id, "deny", "example.org"}, later).exit_status, 0);
  EXPECT_TRUE(slow.wait(std::chrono::seconds(10)).value_or(0) != 0) << "a brokered connection is cut like any other";
  exec("curl -sS https://example.org/denied");
  EXPECT_FALSE(contains(seen(), "/denied")) << seen();
  EXPECT_EQ(runCaisson({"session", "destroy", id}, later).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
