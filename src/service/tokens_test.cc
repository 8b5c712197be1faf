#include "service/tokens.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "service/webhooks.h"

namespace caisson::service {
namespace {

class TokensTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "caisson-tokens-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    home_ = path;
    const char* before = ::getenv("CAISSON_HOME");
    before_ = before == nullptr ? "" : before;
    ::setenv("CAISSON_HOME", path.c_str(), 1);
  }
  void TearDown() override {
    before_.empty() ? ::unsetenv("CAISSON_HOME") : ::setenv("CAISSON_HOME", before_.c_str(), 1);
    std::filesystem::remove_all(home_);
  }
  std::string home_, before_;
};

TEST_F(TokensTest, OnlyTheirHashIsStored) {
  auto store = TokenStore::open();
  ASSERT_TRUE(store);
  const auto secret = store->create({.name = "ci"}, {.wall = 1000});
  ASSERT_TRUE(secret);
  std::ifstream file(home_ + "/server/tokens.json");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("\"ci\""), std::string::npos);
  EXPECT_EQ(text.str().find(secret->substr(4)), std::string::npos);
}

TEST_F(TokensTest, LockThatAnotherProcessHoldsIsAnErrorThatNamesIt) {
  auto store = TokenStore::waitingFor(std::chrono::milliseconds(50));
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->create({.name = "first"}, {.wall = 1000}));
  const std::string path = home_ + "/server/tokens.lock";
  sys::Fd holder(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  auto created = std::async(std::launch::async, [&] { return store->create({.name = "second"}, {.wall = 1000}); });
  const bool bounded = created.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  holder.reset();
  EXPECT_TRUE(bounded) << "it waits without a limit";
  const auto result = created.get();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find(path + ": another process holds it"), std::string::npos)
      << result.error().message();
}

TEST_F(TokensTest, CheckerAcceptsUntilExpiryOrRevocation) {
  auto store = TokenStore::open();
  ASSERT_TRUE(store);
  const auto secret = store->create({.name = "short", .scopes = 1, .expires = 2000}, {.wall = 1000});
  ASSERT_TRUE(secret);
  TokenChecker checker(*TokenStore::open());
  EXPECT_TRUE(checker.check(*secret, {.wall = 1999}));
  EXPECT_FALSE(checker.check(*secret, {.wall = 2000}));
  EXPECT_FALSE(checker.check(*secret + "x", {.wall = 1500}));
  EXPECT_FALSE(checker.check("", {.wall = 1500}));
  EXPECT_FALSE(checker.check(*secret, {.wall = 1500})->may(Scope::exec));
  EXPECT_FALSE(store->create({.name = "short"}, {.wall = 1500}));
  EXPECT_TRUE(*store->revoke("short"));
  EXPECT_FALSE(checker.check(*secret, {.wall = 1500}));
  EXPECT_FALSE(*store->revoke("short"));
}

TEST_F(TokensTest, SettingTheClockNeitherExpiresNorRevivesTokens) {
  auto store = TokenStore::open();
  ASSERT_TRUE(store);
  const Instant begin{.wall = 1000, .boot = 10, .boot_id = "a"};
  Token token{.name = "hour"};
  token.expireAt(begin.after(3600));
  const auto secret = store->create(token, begin);
  ASSERT_TRUE(secret);
  TokenChecker checker(*TokenStore::open());
  EXPECT_TRUE(checker.check(*secret, {.wall = 900'000, .boot = 20, .boot_id = "a"}));
  EXPECT_FALSE(checker.check(*secret, {.wall = 1000, .boot = 3610, .boot_id = "a"}));
  EXPECT_TRUE(checker.check(*secret, {.wall = 2000, .boot = 5, .boot_id = "b"}));
  EXPECT_FALSE(checker.check(*secret, {.wall = 4600, .boot = 5, .boot_id = "b"}));
}

TEST(WebhookSignature, MatchesTheExampleOfTheStandard) {
  EXPECT_EQ(hmacSha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace caisson::service
