#include "cli/learn/learn.h"

#include <gtest/gtest.h>

#include "policy/decode/decode.h"
#include "policy/profiles/profiles.h"

namespace caisson::cli {
namespace {

RunResult denied(std::vector<Denial> denials) {
  RunResult result;
  result.outcome = OutcomeKind::exited;
  result.denials = std::move(denials);
  return result;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Learn, ProposesNothingWhenNothingWasRefused) {
  const Proposal proposal = proposePolicy({}, "bash", denied({}));
  EXPECT_TRUE(has(proposal.policy, "extends = \"bash\""));
  EXPECT_TRUE(has(proposal.diff.at(0), "nothing to change"));
}

TEST(Learn, ProposesOnlyWhatWasRefused) {
  const policy::Policy strict = *policy::builtin("strict");
  const Proposal proposal =
      proposePolicy(strict, "strict",
                    denied({{.rule = "process.allow_exec", .object = "execve", .operation = "start another program"},
                            {.rule = "syscalls.names", .object = "socket", .operation = "system call"},
                            {.rule = "resources.wall_seconds", .object = "30 s", .operation = "run on"}}));
  EXPECT_TRUE(has(proposal.policy, "process.allow_exec = true"));
  EXPECT_TRUE(has(proposal.policy, "\"socket\"]"));
  EXPECT_TRUE(has(proposal.policy, "resources.wall_seconds = 60"));
  EXPECT_FALSE(has(proposal.policy, "allow_fork"));
  EXPECT_FALSE(has(proposal.policy, "resources.memory"));
}

TEST(Learn, NeverProposesWhatNoPolicyAllows) {
  const Proposal proposal = proposePolicy(
      {}, "bash",
      denied({{.rule = "syscalls: no policy allows it", .object = "mount", .operation = "o", .remedy = "r"},
              {.rule = "syscalls.allow", .object = "io_uring_setup"},
              {.rule = "syscalls.allow", .object = "call 999"}}));
  EXPECT_FALSE(has(proposal.policy, "syscalls.allow ="));
  EXPECT_TRUE(has(proposal.policy, "# refused, and no policy allows it: mount"));
}

TEST(Learn, StopsAtTheCeiling) {
  policy::Policy policy;
  policy.resources.memory = 2 * policy::kGiB;
  const Proposal proposal = proposePolicy(policy, "bash", denied({{.rule = "resources.memory"}}));
  EXPECT_FALSE(has(proposal.policy, "resources.memory ="));
  EXPECT_TRUE(has(proposal.policy, "ceiling"));
}

/// A host name or path chosen by a payload must not inject a separate line.
TEST(Learn, NamesChosenByThePayloadCannotInjectSettings) {
  const Proposal proposal = proposePolicy({}, "a\"b",
                                          denied({{.rule = "no entry of network.allowed_hosts",
                                                   .object = "x\"\nisolation.level = \"none\":443",
                                                   .operation = "network: connect",
                                                   .remedy = "r"}}));
  EXPECT_FALSE(has(proposal.policy, "\nisolation"));
  EXPECT_TRUE(has(proposal.policy, "extends = \"a\\\"b\""));
}

/// The text as the egress writes it.
TEST(Learn, ProposesTheHostThatTheEgressRefused) {
  policy::Policy policy;
  policy.network.mode = policy::NetworkMode::proxy;
  policy.network.allowed_hosts = {"a.example"};
  const Proposal proposal = proposePolicy(policy, "bash",
                                          denied({{.rule = "no entry of network.allowed_hosts",
                                                   .object = "b.example:443",
                                                   .operation = "network: connect",
                                                   .remedy = "--allow-host b.example"},
                                                  {.rule = "always blocked: private",
                                                   .object = "10.0.0.1:80",
                                                   .operation = "network: connect",
                                                   .remedy = "none"}}));
  EXPECT_TRUE(has(proposal.policy, "network.allowed_hosts = [\"a.example\", \"b.example\"]")) << proposal.policy;
  EXPECT_FALSE(has(proposal.policy, "network.mode"));
  EXPECT_TRUE(has(proposal.policy, "# refused: 10.0.0.1:80"));
}

FileRequest asked(const std::string& path, FileOperation operation, HostFile on_host = HostFile::file) {
  return {.path = path,
          .operation = operation,
          .state = FileState::absent,
          .count = 1,
          .on_host = on_host,
          .host_readable = true,
          .host_writable = true,
          .host_executable = true,
          .host_directory = {},
          .host_directory_writable = false};
}

Proposal forFiles(std::vector<FileRequest> files, const policy::Policy& policy = {}) {
  RunResult result = denied({});
  result.files = std::move(files);
  return proposePolicy(policy, "bash", result);
}

TEST(LearnPaths, ProposeDirectoriesOnlyIfTheyWereListed) {
  const Proposal proposal = forFiles(
      {asked("/opt/app/data/x", FileOperation::read), asked("/opt/app", FileOperation::look, HostFile::directory),
       asked("/opt/app/data", FileOperation::look, HostFile::directory),
       asked("/opt/other/place", FileOperation::look, HostFile::directory),
       asked("/usr/share/locale/locale.alias", FileOperation::read),
       asked("/opt", FileOperation::read, HostFile::directory),
       asked("/home/me", FileOperation::read, HostFile::directory),
       asked("/srv/list", FileOperation::read, HostFile::directory), asked("/srv/list/one", FileOperation::read)});
  EXPECT_TRUE(has(proposal.policy, "filesystem.read_only = [\"/opt/app/data/x\", \"/opt/other/place\", \"/srv/list\"]"))
      << proposal.policy;
  EXPECT_TRUE(has(proposal.policy, "# /home/me was asked for and holds too much"));
}

TEST(LearnPaths, ProposeWritingOnlyWhereTheCallerMayWrite) {
  FileRequest made = asked("/srv/state/new", FileOperation::create, HostFile::absent);
  made.host_directory = "/srv/state";
  made.host_directory_writable = true;
  FileRequest wide = asked("/home/me/new", FileOperation::create, HostFile::absent);
  wide.host_directory = "/home/me";
  wide.host_directory_writable = true;
  FileRequest foreign = asked("/opt/x", FileOperation::write);
  foreign.host_writable = false;
  policy::Policy policy;
  policy.filesystem.read_only = {"/srv/log"};
  FileRequest log = asked("/srv/log", FileOperation::write);
  log.host_executable = false;
  const Proposal proposal = forFiles({made, wide, foreign, log}, policy);
  EXPECT_TRUE(has(proposal.policy, "filesystem.read_write = [\"/srv/log\", \"/srv/state\"]")) << proposal.policy;
  EXPECT_TRUE(has(proposal.policy, "filesystem.read_only = []")) << proposal.policy;
}

TEST(LearnPaths, SecretsAndInaccessibleFilesBecomeComments) {
  FileRequest unreadable = asked("/srv/other", FileOperation::read);
  unreadable.host_readable = false;
  FileRequest hidden = asked("/workspace/.env", FileOperation::read);
  hidden.state = FileState::hidden;
  const Proposal proposal = forFiles(
      {asked("/home/me/.aws/credentials", FileOperation::read), asked("/home/me/.ssh/config", FileOperation::look),
       asked("/srv/server.key", FileOperation::read), hidden, unreadable, asked("/etc/hostname", FileOperation::read),
       asked("/run/docker.sock", FileOperation::read, HostFile::other)});
  EXPECT_FALSE(has(proposal.policy, "\nfilesystem.")) << proposal.policy;
}

TEST(LearnPaths, FilesThatTheHostExecutesBecomeComments) {
  std::vector<FileRequest> files;
  for (const char* path :
       {"/srv/me/.bashrc", "/srv/me/.ssh/authorized_keys", "/srv/me/.config/fish/config.fish", "/srv/app/.git/hooks/x",
        "/srv/app/.git/config", "/srv/me/.config/autostart/x.desktop", "/srv/me/.local/bin/ls", "/srv/app/.envrc",
        "/etc/crontab", "/etc/profile", "/var/spool/cron/crontabs/root", "/proc/sys/kernel/core_pattern"}) {
    files.push_back(asked(path, FileOperation::write));
    files.back().host_executable = false;
  }
  files.push_back(asked("/srv/app/tool", FileOperation::write));  // executable
  const Proposal proposal = forFiles(files);
  EXPECT_FALSE(has(proposal.policy, "\nfilesystem.")) << proposal.policy;
  EXPECT_TRUE(has(proposal.policy,
                  "# /srv/me/.bashrc was asked for and is not proposed for writing (shells read it when they start)"))
      << proposal.policy;
  EXPECT_TRUE(has(proposal.policy, "# /srv/app/tool was asked for and is not proposed for writing (it is a program)"))
      << proposal.policy;
}

TEST(LearnPaths, DirectoriesWithFilesThatTheHostExecutesBecomeComments) {
  std::vector<FileRequest> files;
  for (const char* directory : {"/srv/me/.config", "/srv/me/.local", "/srv/me/.local/share", "/srv/app/.git",
                                "/srv/app/.git/hooks", "/srv/app/bin", "/srv/me/.config/autostart", "/etc/cron.d"}) {
    files.push_back(asked(std::string(directory) + "/HEAD", FileOperation::create, HostFile::absent));
    files.back().host_directory = directory;
    files.back().host_directory_writable = true;
  }
  const Proposal proposal = forFiles(files);
  EXPECT_FALSE(has(proposal.policy, "\nfilesystem.")) << proposal.policy;
  EXPECT_EQ(proposal.refused.size(), files.size()) << proposal.policy;
}

TEST(LearnPaths, NamesChosenByThePayloadAreEscaped) {
  const Proposal proposal = forFiles({asked("/srv/a\"]\nisolation.level = \"none\"", FileOperation::read),
                                      asked("/srv/\xe2\x80\xae", FileOperation::read)});
  EXPECT_FALSE(has(proposal.policy, "\nisolation")) << proposal.policy;
  EXPECT_FALSE(has(proposal.policy, "\xe2\x80\xae")) << proposal.policy;
}

TEST(LearnPaths, TooManyBecomeAComment) {
  std::vector<FileRequest> many;
  for (int i = 0; i < 200; ++i) many.push_back(asked("/srv/x" + std::to_string(i), FileOperation::read));
  const Proposal proposal = forFiles(many);
  EXPECT_TRUE(has(proposal.policy, "more than 64 paths")) << proposal.policy;
}

}  // namespace
}  // namespace caisson::cli
