// Real servers of protocols that name no host: they are reached by the address that an allowed name resolved to. Each
// test starts its server in the fake internet of world.sh, and shows that it is denied without a rule.
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "network/network.h"

namespace caisson::test {
namespace {

/// The command prefix that starts a program beside the servers of world.sh.
std::vector<std::string> outside() {
  const char* pid = std::getenv("CAISSON_TEST_INTERNET_PID");
  return {"nsenter", "--target", pid == nullptr ? "" : pid, "--net"};
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

bool listens(const std::string& port) {
  const std::string script = "exec 3<>/dev/tcp/93.184.0.4/" + port;
  return eventually([&] { return runProgram({"bash", "-c", script}).exit_status == 0; }, std::chrono::seconds(20));
}

class Servers : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    requireOrSkip(std::getenv("CAISSON_TEST_INTERNET_PID") != nullptr, "run through tests/network/world.sh");
  }
};

/// A PostgreSQL server with a private database, which does not run as root.
class Postgres {
 public:
  explicit Postgres(const TempDir& files) : data_(files.makeDir("data", 0700)) {
    if (::geteuid() == 0) {
      user_ = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};
      (void)!::chown(data_.c_str(), 65534, 65534);
    }
    made_ = runProgram(joined(user_, {programs() / "initdb", "--no-sync", "-A", "trust", "-U", "tester", "-D", data_}));
    if (made_.exit_status != 0) return;
    const std::string who = files.write("pg_hba.conf", "host all all 0.0.0.0/0 trust\n");
    server_.emplace(joined(joined(outside(), user_), {programs() / "postgres", "-D", data_, "-F", "-h", "93.184.0.4",
                                                      "-p", "5433", "-k", "", "-c", "hba_file=" + who}));
  }
  ~Postgres() {
    if (!server_) return;
    server_->signal(SIGQUIT);  // exits at once, but removes its shared memory
    server_->wait(std::chrono::seconds(5));
  }
  static std::filesystem::path programs() {
    std::error_code ignored;
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", ignored)) {
      if (std::filesystem::exists(version.path() / "bin/initdb")) return version.path() / "bin";
    }
    return {};
  }
  [[nodiscard]] const RunOutput& made() const { return made_; }

 private:
  std::string data_;
  std::vector<std::string> user_;
  RunOutput made_;
  std::optional<BackgroundProgram> server_;
};

TEST_F(Servers, PsqlAgainstARealPostgres) {
  requireOrSkip(hasProgram("psql") && !Postgres::programs().empty(), "no PostgreSQL here");
  const Postgres server(files);
  ASSERT_EQ(server.made().exit_status, 0) << server.made().describe();
  ASSERT_TRUE(listens("5433"));
  const std::string query =
      "PGCONNECT_TIMEOUT=10 psql -h bare.example.org -p 5433 -U tester -d postgres -Atc 'select 6*7'";
  const RunOutput output = shell({"bare.example.org:5433"}, query);
  EXPECT_EQ(output.out, "42\n") << output.describe();
  const RunOutput other_port = shell({"bare.example.org"}, query);
  EXPECT_NE(other_port.exit_status, 0) << other_port.describe();
  EXPECT_EQ(other_port.out, "");
}

/// An ssh server for the user of this test, who may only fetch one repository.
class Ssh {
 public:
  explicit Ssh(const TempDir& files) {
    const std::string directory = files.makeDir("ssh", 0700);
    for (const char* key : {"host", "user"}) {
      made_ = runProgram({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory + "/" + key});
    }
    const passwd* self = ::getpwuid(::geteuid());
    name_ = self == nullptr ? "" : self->pw_name;
    key_ = readFile(directory + "/user");
    const std::string repository = std::string(std::getenv("CAISSON_TEST_INTERNET")) + "/repo.git";
    const std::string settings =
        files.write("ssh/sshd_config",
                    "ListenAddress 93.184.0.4:2222\nHostKey " + directory + "/host\nAuthorizedKeysFile " + directory +
                        "/user.pub\nStrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication " +
                        "no\nPermitRootLogin prohibit-password\nForceCommand git -c safe.directory='*' " +
                        "upload-pack " + repository + "\n");
    std::vector<std::string> start{"/usr/sbin/sshd", "-D", "-f", settings};
    if (::geteuid() == 0) {  // needs a directory below /run: mount a private one
      start = {"unshare", "--mount", "sh", "-c",
               "mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec /usr/sbin/sshd -D -f " + settings};
    }
    server_.emplace(joined(outside(), start));
  }
  [[nodiscard]] const RunOutput& made() const { return made_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  RunOutput made_;
  std::string name_, key_;
  std::optional<BackgroundProgram> server_;
};

TEST_F(Servers, GitOverSsh) {
  requireOrSkip(hasProgram("git") && hasProgram("ssh") && ::access("/usr/sbin/sshd", X_OK) == 0, "no ssh server here");
  const Ssh server(files);
  ASSERT_EQ(server.made().exit_status, 0) << server.made().describe();
  ASSERT_TRUE(listens("2222"));
  const std::string script = "umask 077; cat > /tmp/key <<'KEY'\n" + server.key() + R"(KEY
export GIT_SSH_COMMAND="ssh -F none -i /tmp/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
cd /tmp && timeout 20 git clone -q ssh://)" +
                             server.name() + "@bare.example.org:2222/repo.git && cat repo/file";
  const RunOutput output = shell({"bare.example.org:2222"}, script);
  EXPECT_EQ(output.out, "from git\n") << output.describe();
  const RunOutput refused = shell({"bare.example.org"}, script);
  EXPECT_NE(refused.exit_status, 0) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "bare.example.org:2222")) << refused.describe();
}

}  // namespace
}  // namespace caisson::test
