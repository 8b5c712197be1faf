#include "egress/rules.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

Rules rulesOf(RuleTexts texts) {
  if (texts.allowed_ports.empty()) texts.allowed_ports = {"80", "443"};
  auto rules = Rules::from(texts);
  EXPECT_TRUE(rules) << (rules ? "" : rules.error().message());
  return rules ? *rules : Rules();
}

bool allows(const Rules& rules, std::string_view host, std::uint16_t port = 443) {
  const auto canonical = canonicalHost(host);
  return canonical && rules.judge(*canonical, port).allowed;
}

TEST(Rules, AnEmptyListAllowsNothing) {
  const Rules rules = rulesOf({});
  EXPECT_FALSE(allows(rules, "example.org"));
  EXPECT_FALSE(allows(Rules(), "example.org"));
  RuleTexts no_ports{.allowed_hosts = {"example.org"}};
  EXPECT_FALSE(Rules::from(no_ports)->judge(*canonicalHost("example.org"), 443).allowed);
}

TEST(Rules, PatternsMatchExactAndSubdomainHosts) {
  CONFORMS("R-NETWORK-3");
  const Rules rules = rulesOf({.allowed_hosts = {"exact.example", "*.star.example", ".both.example", "192.0.2.5"}});
  EXPECT_TRUE(allows(rules, "EXACT.example."));
  EXPECT_FALSE(allows(rules, "a.exact.example"));
  EXPECT_TRUE(allows(rules, "a.star.example"));
  EXPECT_TRUE(allows(rules, "a.b.star.example"));
  EXPECT_FALSE(allows(rules, "star.example"));
  EXPECT_FALSE(allows(rules, "evilstar.example"));
  EXPECT_TRUE(allows(rules, "both.example"));
  EXPECT_TRUE(allows(rules, "x.both.example"));
  EXPECT_FALSE(allows(rules, "notboth.example"));
  EXPECT_FALSE(allows(rules, "both.example.evil.test"));
  EXPECT_TRUE(allows(rules, "0xc0.0.2.5"));
  EXPECT_FALSE(allows(rules, "192.0.2.6"));
}

TEST(Rules, ADenialWinsOverEveryPattern) {
  CONFORMS("R-NETWORK-3");
  const Rules rules = rulesOf({.allowed_hosts = {"*"}, .denied_hosts = {".evil.example", "192.0.2.9"}});
  EXPECT_TRUE(allows(rules, "example.org"));
  EXPECT_FALSE(allows(rules, "evil.example"));
  EXPECT_FALSE(allows(rules, "a.evil.example"));
  EXPECT_FALSE(allows(rules, "3221225993"));  // 192.0.2.9 as one number
  for (const char* pattern : {"a.evil.example", "*.evil.example", ".evil.example", "a.evil.example:443"}) {
    for (const char* denial : {"a.evil.example", "*.evil.example", ".evil.example"}) {
      EXPECT_TRUE(allows(rulesOf({.allowed_hosts = {pattern}}), "a.evil.example")) << pattern;
      EXPECT_FALSE(allows(rulesOf({.allowed_hosts = {pattern}, .denied_hosts = {denial}}), "a.evil.example"))
          << denial << " against " << pattern;
    }
  }
}

TEST(Rules, LocalNamesNeedAnException) {
  CONFORMS("R-NETWORK-6");
  const Rules any = rulesOf({.allowed_hosts = {"*", "registry.local"}});
  for (const char* name :
       {"localhost", "db.localhost", "registry.local", "db.internal", "a.b.internal", "metadata.google.internal"}) {
    EXPECT_FALSE(allows(any, name)) << name;
  }
  for (const std::string name : {"localhost", "registry.local", "db.internal"}) {
    EXPECT_TRUE(allows(rulesOf({.allowed_hosts = {name}, .private_hosts = {name}}), name)) << name;
    EXPECT_FALSE(allows(rulesOf({.allowed_hosts = {name}, .private_hosts = {"other.local"}}), name)) << name;
  }
  const Rules opened = rulesOf({.allowed_hosts = {"registry.local"}, .private_hosts = {"registry.local"}});
  EXPECT_TRUE(allows(opened, "registry.local"));
  EXPECT_FALSE(allows(opened, "other.local"));
}

TEST(Rules, ResolvedAddressesAreCheckedToo) {
  CONFORMS("R-NETWORK-7", "R-NETWORK-5");
  const Rules rules = rulesOf({.allowed_hosts = {"*"}, .private_hosts = {"registry.local"}});
  const Host host = *canonicalHost("example.org");
  const Host opened = *canonicalHost("registry.local");
  EXPECT_TRUE(rules.judgeAddress(host, *Address::parse("93.184.215.14"), 443, false).allowed);
  EXPECT_FALSE(rules.judgeAddress(host, *Address::parse("93.184.215.14"), 443, true).allowed);
  EXPECT_FALSE(rules.judgeAddress(host, *Address::parse("10.0.0.1"), 443, false).allowed);
  EXPECT_TRUE(rules.judgeAddress(opened, *Address::parse("10.0.0.1"), 443, false).allowed);
  EXPECT_FALSE(rules.judgeAddress(opened, *Address::parse("169.254.169.254"), 443, false).allowed);
}

TEST(Rules, NoExceptionOpensCloudMetadata) {
  CONFORMS("R-NETWORK-5");
  for (const std::string name : {"metadata.google.internal", "169.254.169.254", "100.100.100.200", "fd00:ec2::254"}) {
    const Rules rules = rulesOf({.allowed_hosts = {name}, .private_hosts = {name}});
    const Host host = *canonicalHost(name);
    for (const char* address :
         {"169.254.169.254", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"}) {
      EXPECT_FALSE(rules.judgeAddress(host, *Address::parse(address), 443, false).allowed) << name << " at " << address;
    }
  }
}

TEST(Rules, AnExceptionNamesOneHost) {
  CONFORMS("R-NETWORK-6");
  EXPECT_FALSE(Rules::from({.private_hosts = {"*.local"}}));
  EXPECT_FALSE(Rules::from({.private_hosts = {"*"}}));
  EXPECT_TRUE(Rules::from({.private_hosts = {"registry.local", "10.0.0.1"}}));
}

TEST(Rules, TheNarrowestPortEntryWins) {
  CONFORMS("R-NETWORK-3");
  const Rules rules = rulesOf({.allowed_hosts = {"*"},
                               .allowed_ports = {"80", "443", "8000-8100", "1-1000"},
                               .denied_ports = {"1-1023", "8080-8090"}});
  EXPECT_TRUE(allows(rules, "example.org", 80));
  EXPECT_TRUE(allows(rules, "example.org", 443));
  EXPECT_TRUE(allows(rules, "example.org", 8000));
  EXPECT_FALSE(allows(rules, "example.org", 8085));
  EXPECT_TRUE(allows(rules, "example.org", 81));
  EXPECT_FALSE(allows(rules, "example.org", 1001));
  EXPECT_FALSE(allows(rules, "example.org", 9000));
}

TEST(Rules, MailAndShellProtocolsNeedTheirPortNamed) {
  CONFORMS("R-NETWORK-13");
  const Rules range = rulesOf({.allowed_hosts = {"*"}, .allowed_ports = {"1-65535"}});
  for (const std::uint16_t port : std::initializer_list<std::uint16_t>{20, 21, 22, 23, 25, 465, 587}) {
    EXPECT_FALSE(allows(range, "example.org", port)) << port;
    const Rules named = rulesOf({.allowed_hosts = {"*"}, .allowed_ports = {std::to_string(port)}});
    EXPECT_TRUE(allows(named, "example.org", port)) << port;
  }
  EXPECT_TRUE(allows(range, "example.org", 5432));
}

TEST(Rules, APatternMayNameItsOwnPort) {
  CONFORMS("R-NETWORK-3", "R-NETWORK-13");
  const Rules rules = rulesOf({.allowed_hosts = {"git.example:22", "example.org"}});
  EXPECT_TRUE(allows(rules, "git.example", 22));
  EXPECT_FALSE(allows(rules, "git.example", 443));
  EXPECT_FALSE(allows(rules, "example.org", 22));
  EXPECT_TRUE(rules.judgeName(*canonicalHost("git.example")).allowed);
}

TEST(Rules, FreeBytesCountWildcardCharactersOnly) {
  const Rules rules = rulesOf({.allowed_hosts = {"exact.example", "*.star.example", "a.star.example"}});
  EXPECT_EQ(rules.freeBytes(*canonicalHost("exact.example")), 0U);
  EXPECT_EQ(rules.freeBytes(*canonicalHost("secret.star.example")), 7U);
  EXPECT_EQ(rules.freeBytes(*canonicalHost("a.star.example")), 0U);
  EXPECT_EQ(rulesOf({.allowed_hosts = {"*"}}).freeBytes(*canonicalHost("secret.star.example")), 0U);
}

TEST(Rules, LaterChangeWins) {
  Rules rules = rulesOf({.allowed_hosts = {"example.org"}});
  ASSERT_TRUE(rules.deny("example.org"));
  EXPECT_FALSE(allows(rules, "example.org"));
  ASSERT_TRUE(rules.allow("example.org"));
  EXPECT_TRUE(allows(rules, "example.org"));
  ASSERT_TRUE(rules.allow("db.example:5432"));
  EXPECT_TRUE(allows(rules, "db.example", 5432));
  // A forgotten pattern neither allows nor denies: a wider pattern still decides.
  ASSERT_TRUE(rules.forget("example.org"));
  EXPECT_FALSE(allows(rules, "example.org"));
  ASSERT_TRUE(rules.allow(".example.org"));
  EXPECT_TRUE(allows(rules, "example.org"));
  EXPECT_FALSE(rules.forget("not a host"));
  EXPECT_FALSE(rules.allow("not a host"));
}

TEST(Rules, UnlistedHostsPromptAndForbiddenHostsDoNot) {
  const Rules rules = rulesOf({.allowed_hosts = {"example.org", "db.example:5432"},
                               .denied_hosts = {"evil.test"},
                               .allowed_ports = {"80", "443", "1-1023"},
                               .denied_ports = {"8081"}});
  const auto askable = [&](const char* host, std::uint16_t port) {
    const Decision decision = rules.judge(*canonicalHost(host), port);
    return !decision.allowed && decision.askable;
  };
  EXPECT_TRUE(askable("other.example", 443));
  EXPECT_TRUE(askable("example.org", 9000));
  EXPECT_TRUE(askable("example.org", 22));
  EXPECT_TRUE(askable("db.example", 5433));
  EXPECT_FALSE(askable("evil.test", 443));
  EXPECT_FALSE(askable("example.org", 8081));
  EXPECT_FALSE(askable("other.example", 8081));
  EXPECT_FALSE(askable("printer.local", 80));
  EXPECT_FALSE(askable("localhost", 80));
  EXPECT_FALSE(askable("10.0.0.1", 80)) << "an answer would not open it";
}

TEST(Rules, RefusalNamesTheRuleAndARemedy) {
  CONFORMS("R-USE-5");
  const Rules rules = rulesOf({.allowed_hosts = {"example.org"}});
  const Decision name = rules.judge(*canonicalHost("other.example"), 443);
  EXPECT_EQ(name.remedy, "--allow-host other.example");
  const Decision port = rules.judge(*canonicalHost("example.org"), 8080);
  EXPECT_EQ(port.remedy, "--allow-port 8080");
  const Decision address = rules.judge(*canonicalHost("10.0.0.1"), 443);
  EXPECT_EQ(address.remedy, "--allow-host 10.0.0.1, once an owner named it in network.private_hosts");
}

TEST(Rules, ANamedExceptionDoesNotOpenAMetadataService) {
  CONFORMS("R-NETWORK-5");
  for (const std::string name : {"metadata.google.internal", "metadata.goog", "instance-data"}) {
    const Rules rules = rulesOf({.allowed_hosts = {name}, .private_hosts = {name}});
    EXPECT_FALSE(rules.judge(*canonicalHost(name), 80).allowed) << name;
    EXPECT_EQ(rules.judge(*canonicalHost(name), 80).remedy, "") << name;
  }
}

/// The answers of a metadata service are credentials of the machine: no prompt and no hint offers to allow it.
TEST(Rules, RefusalOfAMetadataServiceHasNoRemedy) {
  CONFORMS("R-NETWORK-5");
  const Rules rules = rulesOf({.allowed_hosts = {"example.org"}});
  for (const char* host : {"169.254.169.254", "100.100.100.200", "fd00:ec2::254", "metadata.google.internal",
                           "metadata", "metadata.goog", "instance-data"}) {
    const Decision decision = rules.judge(*canonicalHost(host), 80);
    EXPECT_FALSE(decision.allowed) << host;
    EXPECT_EQ(decision.remedy, "") << host;
    EXPECT_FALSE(decision.askable) << host;
  }
  const Rules any = rulesOf({.allowed_hosts = {"*"}});
  const Host host = *canonicalHost("example.org");
  EXPECT_EQ(any.judgeAddress(host, *Address::parse("169.254.169.254"), 443, false).remedy, "");
}

}  // namespace
}  // namespace caisson::egress
