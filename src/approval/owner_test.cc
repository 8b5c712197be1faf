#include "approval/owner.h"

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "policy/profiles/profiles.h"
#include "support/temp_dir.h"

namespace caisson::approval {

namespace {

Result<Owner> decoded(const std::string& text) {
  auto document = policy::readText(text, policy::Format::toml, "config.toml");
  if (!document) return std::unexpected(document.error());
  return decodeOwner(*document);
}

}  // namespace

TEST(OwnerConfiguration, SetsCeilingsDefaultsAndDeniedPaths) {
  const auto owner = decoded(
      "[ceilings]\nmemory = '4G'\nwall_seconds = '1h'\ncpus = 4\nprocesses = 900\n[defaults]\nprofile = 'shell'\n"
      "[filesystem]\nalways_denied = ['/srv/secrets/']\n");
  ASSERT_TRUE(owner) << owner.error().message();
  const policy::Ceilings full = owner->ceilingsFor({});
  EXPECT_EQ(full.memory, 4 * policy::kGiB);
  EXPECT_EQ(full.wall_seconds, 3600);
  EXPECT_EQ(full.open_files, 4096U);  // the built-in ceiling, since the owner sets none
  EXPECT_EQ(owner->ceilingsFor({.isolation = {.level = policy::Level::process}}).output, 10 * policy::kMiB);
  EXPECT_EQ(owner->profile, "shell");
  EXPECT_EQ(owner->always_denied, std::vector<std::string>{"/srv/secrets"});
}

TEST(OwnerConfiguration, TildeDeniesTheHomeOfTheVariableAndOfTheUserDatabase) {
  const char* before = std::getenv("HOME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("HOME", "/home/me", 1);
  const auto owner = decoded("[filesystem]\nalways_denied = ['~/secrets']\n[alerts]\ncommand = ['~/bin/alert', '~']\n");
  const auto other = decoded("[filesystem]\nalways_denied = ['~else/secrets']\n");
  if (before != nullptr) ::setenv("HOME", kept.c_str(), 1);
  ASSERT_TRUE(owner) << owner.error().message();
  const passwd* entry = ::getpwuid(::geteuid());
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(owner->always_denied,
            (std::vector<std::string>{"/home/me/secrets", std::string(entry->pw_dir) + "/secrets"}));
  EXPECT_EQ(owner->alerts.at(0).command, (std::vector<std::string>{"/home/me/bin/alert", "~"}));
  EXPECT_FALSE(other);
}

TEST(OwnerConfiguration, RuntimesMustBeAllowedByBothFiles) {
  const auto system = decoded("[runtimes]\nallowed = ['runc', 'crun']\npaths = ['crun=/opt/crun']\n");
  const auto user = decoded("[runtimes]\nallowed = ['crun', 'runsc']\npaths = ['crun=/home/me/crun']\n");
  ASSERT_TRUE(system && user);
  const auto both = mergeOwners(*system, *user);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->runtimes.allowed, std::vector<std::string>{"crun"});
  EXPECT_EQ(both->runtimes.paths.at(0).second, "/opt/crun") << "the system's wins";
  policy::Policy policy = *policy::builtin("bash");
  EXPECT_TRUE(both->check(policy));
  policy.isolation.runtime = policy::Runtime::crun;
  EXPECT_TRUE(both->check(policy));
  policy.isolation.runtime = policy::Runtime::runc;
  const auto refused = both->check(policy);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("does not allow runc"), std::string::npos);
  EXPECT_FALSE(decoded("[runtimes]\nallowed = ['docker']\n"));
  EXPECT_FALSE(decoded("[runtimes]\npaths = ['crun=bin/crun']\n"));
  EXPECT_FALSE(decoded("[runtimes]\npath = ['x']\n"));
}

TEST(OwnerConfiguration, UnknownKeysAndInvalidValuesAreErrors) {
  for (const char* text : {"x = 1", "[ceilings]\nmemory = -1", "[ceilings]\nmemory = 'much'", "[ceilings]\nram = 1",
                           "[defaults]\nprofile = 3", "[filesystem]\nalways_denied = ['relative']",
                           "[filesystem]\nalways_denied = '/x'", "[ceilings]\ncpus = nan", "ceilings = 3", "[other]"}) {
    const auto owner = decoded(text);
    ASSERT_FALSE(owner) << text;
    EXPECT_NE(owner.error().object.find("config.toml"), std::string::npos) << owner.error().message();
  }
}

TEST(OwnerConfiguration, UserFileCanLowerButNotRaiseSystemCeilings) {
  const Owner system =
      *decoded("[ceilings]\nmemory = '4G'\n[filesystem]\nalways_denied = ['/a']\n[defaults]\nprofile = 'shell'");
  const auto lower =
      mergeOwners(system, *decoded("[ceilings]\nmemory = '1G'\ncpus = 16\n[filesystem]\nalways_denied = ['/b']"));
  ASSERT_TRUE(lower);
  EXPECT_EQ(lower->ceilings.memory, 1 * policy::kGiB);
  EXPECT_EQ(lower->ceilings.cpus, 16);  // the system's file does not set it
  EXPECT_EQ(lower->always_denied, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(lower->profile, "shell");
  EXPECT_FALSE(mergeOwners(system, *decoded("[ceilings]\nmemory = '8G'")));
}

TEST(OwnerConfiguration, AlertsOfBothFilesAreRaised) {
  const auto system = decoded("[alerts]\ncommand = ['/bin/page', 'x']\n");
  const auto user = decoded("[alerts]\nwebhook = 'https://example.org/hook'\n");
  ASSERT_TRUE(system && user);
  const auto both = mergeOwners(*system, *user);
  ASSERT_TRUE(both);
  ASSERT_EQ(both->alerts.size(), 2U);
  EXPECT_EQ(both->alerts[0].command, (std::vector<std::string>{"/bin/page", "x"}));
  EXPECT_EQ(both->alerts[1].webhook, "https://example.org/hook");
}

TEST(OwnerConfiguration, ImageSettingsOfBothFilesApply) {
  const auto system = decoded("[images]\nquota = '1G'\nsignatures = ['docker.io/library/*=/etc/key.pem']\n");
  const auto user = decoded("[images]\nquota = '2G'\nmirrors = ['docker.io=https://mirror.example']\n");
  ASSERT_TRUE(system && user);
  const auto both = mergeOwners(*system, *user);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->images.quota, 1U << 30);
  ASSERT_EQ(both->images.signatures.size(), 1U);
  EXPECT_EQ(both->images.signatures[0].pattern, "docker.io/library/*");
  ASSERT_EQ(both->images.mirrors.size(), 1U);
  EXPECT_EQ(both->images.mirrors[0].second, "https://mirror.example");
}

TEST(OwnerConfiguration, SignatureRulesNameImagesAsTheyAreStored) {
  const auto owner = decoded("[images]\nsignatures = ['victim=/etc/key.pem', 'GHCR.IO/team/*=/etc/key.pem']\n");
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->images.signatures[0].pattern, "docker.io/library/victim");
  EXPECT_EQ(owner->images.signatures[1].pattern, "ghcr.io/team/*");
  const auto refused = decoded("[images]\nsignatures = ['victim:1=/etc/key.pem']\n");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("victim:1"), std::string::npos) << refused.error().message();
}

TEST(OwnerConfiguration, MalformedImageSettingsAreRefused) {
  for (const char* text : {"quota = 'much'", "mirrors = 'docker.io'", "mirrors = ['docker.io=ftp://x']",
                           "signatures = ['docker.io']", "signatures = ['docker.io/*=key.pem']", "unknown = 1"}) {
    EXPECT_FALSE(decoded(std::string("[images]\n") + text + "\n")) << text;
  }
}

TEST(OwnerConfiguration, FileThatOthersCanWriteIsRejected) {
  const test::TempDir directory;
  const std::string file = directory.write("config.toml", "[defaults]\nprofile = 'shell'\n", 0600);
  ASSERT_TRUE(loadOwner("", file));
  EXPECT_EQ(loadOwner("", file)->profile, "shell");
  chmod(file.c_str(), 0620);
  EXPECT_FALSE(loadOwner("", file));
  chmod(file.c_str(), 0602);
  EXPECT_FALSE(loadOwner("", file));
  chmod(file.c_str(), 0600);
  ASSERT_EQ(link(file.c_str(), (directory / "other").c_str()), 0);
  EXPECT_FALSE(loadOwner("", file)) << "it has another name";
  ASSERT_EQ(unlink((directory / "other").c_str()), 0);
  EXPECT_TRUE(loadOwner("", file));
  ASSERT_EQ(symlink(file.c_str(), (directory / "link.toml").c_str()), 0);
  EXPECT_FALSE(loadOwner("", directory / "link.toml"));
  EXPECT_TRUE(geteuid() == 0 || !loadOwner(file, ""));  // the system's file must belong to root
  EXPECT_TRUE(loadOwner(directory / "none", directory / "nor this")->empty());
}

TEST(OwnerConfiguration, DeniedPathsAreTranslatedToSandboxPaths) {
  const Owner owner = *decoded("[filesystem]\nalways_denied = ['/srv/project/keys', '/opt/hidden']");
  policy::Policy policy = *policy::builtin("bash");
  ASSERT_TRUE(denyAlways(owner, "/srv/project", policy));
  EXPECT_EQ(policy.filesystem.denied, (std::vector<std::string>{"/workspace/keys", "/opt/hidden"}));
  policy = *policy::builtin("bash");
  EXPECT_FALSE(denyAlways(owner, "/srv/project/keys/below", policy));
  policy = *policy::builtin("bash");
  policy.filesystem.read_only = {"/opt/hidden/x"};
  EXPECT_FALSE(denyAlways(owner, "", policy));
}

TEST(Owner, CeilingsLowerTheDefaultsOfDevAndRejectHigherValuesOfAFile) {
  Owner owner;
  owner.ceilings.memory = 64 * policy::kMiB;
  owner.ceilings.processes = 1000;
  policy::Policy dev = *policy::builtin("dev");
  ASSERT_TRUE(owner.check(dev));
  EXPECT_EQ(dev.resources.memory, 64 * policy::kMiB);
  EXPECT_EQ(dev.process.max_processes, 1000U);
  EXPECT_EQ(dev.resources.open_files, 16384U);
  policy::Policy own = *policy::builtin("dev");
  own.process.max_processes = 2000;
  EXPECT_FALSE(owner.check(own));
  policy::Policy bash = *policy::builtin("bash");
  EXPECT_FALSE(owner.check(bash)) << "only the defaults of dev adapt";
}

TEST(Owner, CeilingsHoldForLimitsThatAPolicyLeavesOut) {
  Owner owner;
  owner.ceilings.wall_seconds = 10;
  owner.ceilings.output = 1000;
  for (const char* name : {"dev", "bash"}) {
    policy::Policy policy = *policy::builtin(name);
    ASSERT_TRUE(owner.check(policy));
    EXPECT_EQ(policy::effectiveWallSeconds(policy), 10) << name;
    EXPECT_EQ(policy::effectiveOutput(policy), 1000U) << name;
  }
}

TEST(Owner, PrivateHostsAreDroppedIfThePolicySetsDnsServersOrAProxy) {
  Owner owner;
  owner.private_hosts = {"git.corp.example"};
  policy::Policy policy;
  ASSERT_TRUE(owner.check(policy));
  EXPECT_EQ(policy.network.private_hosts, owner.private_hosts);
  policy::Policy with_servers, with_proxy;
  with_servers.network.dns_servers = {"198.51.100.1"};
  with_proxy.network.upstream_proxy = "http://198.51.100.1:3128";
  for (policy::Policy* each : {&with_servers, &with_proxy}) {
    ASSERT_TRUE(owner.check(*each));
    EXPECT_TRUE(each->network.private_hosts.empty());
  }
}

}  // namespace caisson::approval
