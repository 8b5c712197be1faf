#include "policy/rules/git_config_shown.h"

#include <gtest/gtest.h>

namespace caisson::policy {
namespace {

TEST(ShownGitConfig, CredentialsOfEveryKindAreLeftOut) {
  for (const char* text : {
           "[imap]\n\tpass = canary\n",
           "[credential]\n\thelper = \"!f() { echo password=canary; }; f\"\n",
           "[http]\n\tproxy = http://user:canary@proxy:3128\n",
           "[github]\n\toauth-token = canary\n",
           "[gitlab]\n\tprivate-token = canary\n",
           "[gui]\n\tpassword = canary\n",
           "[log]\n\tx = ghp_canary00000000000000000000000000000000\n",
           "[branch \"ghp_canary00000000000000000000000000000000\"]\n\tremote = o\n",
           "# canary-0123456789abcdef\n[core]\n\tbare = true\n",
           "[push]\n\tcanary\n\ttoken = canary\n",
           "[x]\n\tcanary = 1\n",
           "[remote \"o\"]\n\turl = https://example.org/x.git?private_token=canary\n",
           "[remote \"o\"]\n\turl = https://me:can/ary@example.org/x\n",
           "[remote \"o\"]\n\turl = https://me:\\\n\tcanary@example.org/x\n",
           "[remote \"o\"]\r\n\turl = https://me:\\\r\ncanary@example.org/x\r\n",
           "[remote.o]\nurl=https://canary@example.org\n",
           "[url \"https://me:canary@example.org/\"]\n\tinsteadOf = https://example.org/\n",
           "[http \"https://canary@example.org\"]\n\tsslVerify = true\n",
           "[http] extraHeader = canary\n",
           "[core]\n\tsshCommand = sshpass -p canary ssh\n",
           "[alias]\n\tx = !curl -H canary\n",
           "[sendemail]\n\tsmtpPass = canary\n",
           "[core]\n\tbare = false ; token: canary\n",
           "# url = https://me:canary@example.org\n[core]\n\tbare = false\n",
           "[url \"https://me:canary@example.org\"]\n",
           "[url \"https://me:canary@example.org\"]\n[core]\n\tbare = true\n",
           "[unknown \"canary\"]\n\tx\n",
       }) {
    const auto shown = shownGitConfig(text);
    ASSERT_TRUE(shown) << text;
    EXPECT_FALSE(shown->complete) << text;
    EXPECT_EQ(shown->text.find("ary@"), std::string::npos) << shown->text;
    for (const std::string& name : shown->left_out) EXPECT_EQ(name.find("canary"), std::string::npos) << text;
    if (std::string_view(text).starts_with("[push]")) continue;  // a name that git does not know, without a value
    EXPECT_EQ(shown->text.find("canary"), std::string::npos) << shown->text;
  }
}

TEST(ShownGitConfig, WhatGitRefusesIsNoConfiguration) {
  for (const char* text : {
           "canary = canary\n",
           "canary\n",
           "[core canary]\n",
           "[core] canary ]\n\tx = 1\n",
           "[core\n\tx = 1\n",
           "[core \"x\n\ty = 1\n",
           "[core]\n\tx_y = 1\n",
           "[core]\n\t1x = 1\n",
           "[core]\n\tx y\n",
           "[core]\n\tx # comment\n",
           "[core]\n\tx = \"1\n",
           "[core]\n\tx = \\q\n",
           "{\"password\": \"canary\"}\n",
           "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n",
       }) {
    EXPECT_FALSE(shownGitConfig(text)) << text;
    EXPECT_FALSE(isRepositoryConfig(text)) << text;
  }
  EXPECT_TRUE(isRepositoryConfig("[core]\n\trepositoryformatversion = 0\n\tbare = true\n"));
  EXPECT_FALSE(isRepositoryConfig("[app]\n\tbare = true\n"));
}

TEST(ShownGitConfig, OrdinaryConfigurationIsShownAsItIs) {
  const auto shown = shownGitConfig(
      "# ordinary\n[core]\n\trepositoryformatversion = 1\n\tfilemode = true\n\tbare = "
      "false\n[extensions]\n\tworktreeConfig\n"
      "[remote \"o\"]\n\turl = git@example.org:x\n\turl = ssh://git@example.org/x\n\tfetch = "
      "+refs/heads/*:refs/remotes/o/*\n"
      "[branch \"main\"]\n\tremote = o\n[push]\n\tdefault = simple\n[color]\n\tui = auto\n[user]\n\tname = A B\n"
      "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n");
  ASSERT_TRUE(shown);
  EXPECT_TRUE(shown->complete) << shown->text;
  EXPECT_TRUE(shown->left_out.empty());
}

TEST(ShownGitConfig, WhatIsLeftOutIsNamedOnceAndTheRestStays) {
  const auto shown = shownGitConfig(
      "[core]\n\tfileMode\n\teditor = \"a \\\"b\\\" # c\"\n[imap]\n\tpass = 1\n[imap]\n\tpass = 2\n[x]\n\tnote = 1\n"
      "[remote \"a\\\"b\"]\n\turl = https://t@h/x\n\turl = /p\n");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->left_out, std::vector<std::string>{"imap.pass"});
  EXPECT_EQ(shown->text,
            "[core]\n\tfilemode\n\teditor = \"a \\\"b\\\" # c\"\n[remote \"a\\\"b\"]\n"
            "\turl = https://REDACTED@h/x\n\turl = /p\n");
  EXPECT_EQ(shownGitConfig(shown->text)->text, shown->text);
}

}  // namespace
}  // namespace caisson::policy
