#include "policy/rules/credential.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policy/decode/decode.h"
#include "policy/describe/json.h"

namespace caisson::policy {
namespace {

constexpr const char* kGood =
    "[network]\nmode = \"proxy\"\n[[network.credentials]]\nhost = \"api.example.org\"\nsecret_env = \"API_KEY\"\n";

std::string problemOf(const std::string& members, const std::string& before = {}) {
  const auto policy =
      parse(before + "[network]\nmode = \"proxy\"\n[[network.credentials]]\n" + members, Format::toml, "p.toml");
  return policy ? "" : policy.error().message();
}

TEST(Credentials, AreReadWithTheirDefaults) {
  const auto policy = parse(kGood, Format::toml, "p.toml");
  ASSERT_TRUE(policy) << policy.error().message();
  ASSERT_EQ(policy->network.credentials.size(), 1U);
  const Credential& one = policy->network.credentials[0];
  EXPECT_EQ(one.header, "Authorization");
  EXPECT_EQ(one.value, "Bearer {secret}");
  EXPECT_EQ(targetOf(one), "api.example.org:443");
  EXPECT_EQ(placeholderOf(one), "caisson-credential-api.example.org");
}

TEST(Credentials, RoundTrip) {
  const auto policy = parse(kGood, Format::toml, "p.toml");
  const auto again = parse(toJson(*policy), Format::json, "p.json");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->network.credentials, policy->network.credentials);
}

TEST(Credentials, AreAWidening) {
  const auto policy = parse(kGood, Format::toml, "p.toml");
  EXPECT_TRUE(
      std::ranges::any_of(policy->widenings, [](const Widening& one) { return one.key == "network.credentials"; }));
}

/// The text of a policy is printed on terminals and in logs.
TEST(Credentials, ALiteralSecretIsRefusedAndNotShown) {
  const std::string literal = problemOf("host = \"a.example.org\"\nsecret = \"hunter2hunter2\"\n");
  EXPECT_NE(literal.find("does not belong in a policy"), std::string::npos) << literal;
  const std::string in_value =
      problemOf("host = \"a.example.org\"\nsecret_env = \"K\"\nvalue = \"Bearer hunter2hunter2\"\n");
  EXPECT_NE(in_value.find("{secret}"), std::string::npos) << in_value;
  const std::string in_name = problemOf("host = \"a.example.org\"\nsecret_env = \"hunter2-hunter2\"\n");
  EXPECT_NE(in_name.find("name of a variable"), std::string::npos) << in_name;
  const std::string typed = problemOf("host = \"a.example.org\"\nsecret_env = 8675309\n");
  EXPECT_NE(typed.find("a string"), std::string::npos) << typed;
  for (const std::string& text : {literal, in_value, in_name})
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  EXPECT_EQ(typed.find("8675309"), std::string::npos) << typed;
}

TEST(Credentials, NeedOneHostGivenByName) {
  for (const char* host : {"*.example.org", ".example.org", "*", "192.0.2.1", "[2001:db8::1]", "Example.org",
                           "example.org.", "example.org:0", "example.org:70000", "a_b.example.org", "2130706433", ""}) {
    EXPECT_NE(problemOf(std::string("host = \"") + host + "\"\nsecret_env = \"K\"\n"), "") << host;
  }
  EXPECT_EQ(problemOf("host = \"example.org:8443\"\nsecret_env = \"K\"\n"), "");
}

TEST(Credentials, FramingHeadersAreRejected) {
  for (const char* header : {"Host", "content-length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer",
                             "Proxy-Authorization", "Expect", "A B", "A:B", "A\\r\\nB", ""}) {
    EXPECT_NE(problemOf(std::string("host = \"a.example.org\"\nsecret_env = \"K\"\nheader = \"") + header + "\"\n"), "")
        << header;
  }
  EXPECT_EQ(problemOf("host = \"a.example.org\"\nsecret_env = \"K\"\nheader = \"X-Api-Key\"\nvalue = \"{secret}\"\n"),
            "");
}

TEST(Credentials, NeedOneSourceWithoutContradictions) {
  EXPECT_NE(problemOf("host = \"a.example.org\"\n"), "");
  EXPECT_NE(problemOf("host = \"a.example.org\"\nsecret_env = \"K\"\nsecret_file = \"/k\"\n"), "");
  EXPECT_NE(problemOf("host = \"a.example.org\"\nsecret_file = \"relative\"\n"), "");
  EXPECT_NE(problemOf("host = \"a.example.org\"\nsecret_env = \"K\"\n", "[environment]\npass = [\"K\"]\n"), "")
      << "the program would get what is to stay outside";
  EXPECT_NE(
      problemOf("host = \"a.example.org\"\nsecret_env = \"K\"\n[[network.credentials]]\nhost = \"a.example.org\"\n"
                "name = \"b\"\nsecret_env = \"L\"\n"),
      "")
      << "two values for one header";
  const std::string two =
      "host = \"a.example.org\"\nsecret_env = \"K\"\nca_file = \"/a.pem\"\n[[network.credentials]]\n"
      "host = \"a.example.org\"\nname = \"b\"\nheader = \"X-Key\"\nsecret_env = \"L\"\nca_file = ";
  EXPECT_NE(problemOf(two + "\"/b.pem\"\n"), "") << "whose word counts?";
  EXPECT_EQ(problemOf(two + "\"/a.pem\"\n"), "");
}

}  // namespace
}  // namespace caisson::policy
