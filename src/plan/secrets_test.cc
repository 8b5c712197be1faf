#include "plan/secrets.h"

#include <gtest/gtest.h>

namespace caisson::plan {
namespace {

TEST(RedactGitConfig, PasswordsAndTokensAreReplaced) {
  const auto redacted = redactGitConfig(
      "[remote \"origin\"]\n\turl = https://me:ghp_secret@example.org/x.git\n\tpushurl = "
      "https://ghp_token@example.org/x\n"
      "[http]\n\textraHeader = AUTHORIZATION: basic c2VjcmV0\n[core]\n\tbare = false\n");
  ASSERT_TRUE(redacted);
  EXPECT_EQ(redacted->find("ghp_"), std::string::npos) << *redacted;
  EXPECT_EQ(redacted->find("c2Vjc"), std::string::npos) << *redacted;
  EXPECT_NE(redacted->find("url = https://REDACTED@example.org/x.git"), std::string::npos) << *redacted;
  EXPECT_NE(redacted->find("bare = false"), std::string::npos);
}

TEST(RedactGitConfig, UnusualSpellingsAreReplacedToo) {
  for (const char* text : {"[http] extraHeader = canary\n", "[http]\n\textraheader = a \\\n canary \\\n canary\n",
                           "\turl = https://me:it's-canary@example.org/x\n", "\tPassword=canary"}) {
    const auto redacted = redactGitConfig(text);
    ASSERT_TRUE(redacted) << text;
    EXPECT_EQ(redacted->find("canary"), std::string::npos) << *redacted;
  }
}

TEST(RedactGitConfig, ConfigurationWithoutSecretsStays) {
  EXPECT_FALSE(
      redactGitConfig("[remote \"origin\"]\n\turl = https://example.org/x.git\n\turl = git@example.org:x\n"
                      "\turl = ssh://git@example.org/x\n"));
}

}  // namespace
}  // namespace caisson::plan
