#include "plan/secrets.h"

#include <gtest/gtest.h>

namespace caisson::plan {
namespace {

TEST(ShownConfig, PasswordsAndTokensAreReplaced) {
  const auto shown = shownConfig(
      "[remote \"origin\"]\n\turl = https://me:ghp_secret@example.org/x.git\n\tpushurl = "
      "https://ghp_token@example.org/x\n"
      "[http]\n\textraHeader = AUTHORIZATION: basic c2VjcmV0\n[core]\n\tbare = false\n");
  ASSERT_TRUE(shown && shown->changed);
  EXPECT_EQ(shown->text.find("ghp_"), std::string::npos) << shown->text;
  EXPECT_EQ(shown->text.find("c2Vjc"), std::string::npos) << shown->text;
  EXPECT_NE(shown->text.find("url = https://REDACTED@example.org/x.git"), std::string::npos) << shown->text;
  EXPECT_NE(shown->text.find("bare = false"), std::string::npos);
}

TEST(ShownConfig, UnusualSpellingsAreReplacedToo) {
  for (const char* text : {"[http] extraHeader = canary\n", "[http]\n\textraheader = a \\\n canary \\\n canary\n",
                           "[x]\turl = https://me:it's-canary@example.org/x\n", "[x]\tPassword=canary"}) {
    const auto shown = shownConfig(text);
    ASSERT_TRUE(shown && shown->changed) << text;
    EXPECT_EQ(shown->text.find("canary"), std::string::npos) << shown->text;
  }
}

TEST(ShownConfig, ConfigurationWithoutSecretsStays) {
  const auto shown = shownConfig(
      "[remote \"origin\"]\n\turl = https://example.org/x.git\n\turl = git@example.org:x\n"
      "\turl = ssh://git@example.org/x\n");
  ASSERT_TRUE(shown);
  EXPECT_FALSE(shown->changed) << shown->text;
}

}  // namespace
}  // namespace caisson::plan
