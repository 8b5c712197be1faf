#include "approval/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <future>
#include <thread>

#include "approval/what.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::approval {

namespace {

constexpr std::int64_t kNow = 1'800'000'000;

class ApprovalStore : public testing::Test {
 protected:
  [[nodiscard]] Store open() const {
    auto store = Store::adopt(sys::Fd(::open(directory_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), false);
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  test::TempDir directory_;
};

}  // namespace

TEST(Approvables, NameExactlyOneThingInPlainAscii) {
  for (const std::string_view good :
       {"level:none", "net:host", "net:proxy", "host:example.org", "host:*.example.org:443", "host:[2001:db8::1]",
        "path:/srv/data", "tool:formatter", "policy:deploy"}) {
    EXPECT_TRUE(checkWhat(good)) << good;
    EXPECT_FALSE(meaning(good).empty());
  }
  for (const std::string_view bad :
       {"", "level", "level:full", "net:", "host:*", "host:", "host:a b", "path:relative", "path:/proc/1", "tool:a/b",
        "host:example.org\xe2\x80\xae", "tool:a\x1b[2K", "host:ex\xd0\xb0mple.org", "project:abc", "x:y"}) {
    EXPECT_FALSE(checkWhat(bad)) << bad;
  }
}

TEST_F(ApprovalStore, LockThatAnotherProcessHoldsIsAnErrorThatNamesIt) {
  Store store = *Store::adopt(sys::Fd(::open(directory_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), false,
                              std::chrono::milliseconds(50));
  ASSERT_TRUE(store.grant({.what = "host:a.example", .by = "terminal"}, kNow));
  const std::string path = directory_ / "lock";
  sys::Fd holder(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  auto redeemed = std::async(std::launch::async, [&] { return store.redeem("host:a.example", "", kNow); });
  const bool bounded = redeemed.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  holder.reset();
  EXPECT_TRUE(bounded) << "it waits without a limit";
  const auto result = redeemed.get();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find(path + ": another process holds it"), std::string::npos)
      << result.error().message();
  EXPECT_TRUE(*store.redeem("host:a.example", "", kNow)) << "the failed use took the approval";
}

TEST_F(ApprovalStore, UseAllUsesEveryApprovalOrNone) {
  Store store = open();
  ASSERT_TRUE(store.grant({.what = "host:a.example", .by = "terminal"}, kNow));
  ASSERT_TRUE(store.grant({.what = "host:b.example", .by = "terminal"}, kNow));
  const Claim missing[] = {{"host:a.example", ""}, {"host:c.example", ""}};
  const auto none = store.useAll(missing, kNow);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  const Claim twice[] = {{"host:a.example", ""}, {"host:a.example", ""}};
  EXPECT_FALSE(*store.useAll(twice, kNow));
  EXPECT_EQ(store.list(kNow)->size(), 2U);
  const Claim both[] = {{"host:b.example", ""}, {"host:a.example", ""}};
  const auto used = store.useAll(both, kNow);
  ASSERT_TRUE(used && *used);
  EXPECT_EQ((**used)[0].what, "host:b.example");
  EXPECT_EQ((**used)[1].what, "host:a.example");
  EXPECT_TRUE(store.list(kNow)->empty());
}

TEST_F(ApprovalStore, UsedApprovalIsRestoredOnceAndOnlyForItsClaim) {
  Store store = open();
  ASSERT_TRUE(store.grant({.what = "host:a.example", .expires = kNow + 600, .by = "terminal"}, kNow));
  ASSERT_TRUE(store.use("host:a.example", "one", kNow)->has_value());
  EXPECT_FALSE(*store.giveBack("host:a.example", "two", kNow)) << "another session claimed it";
  EXPECT_FALSE(*store.giveBack("host:b.example", "one", kNow));
  EXPECT_FALSE(*store.giveBack("host:a.example", "one", kNow + 60)) << "too late";
  EXPECT_TRUE(*store.giveBack("host:a.example", "one", kNow + 1));
  EXPECT_FALSE(*store.giveBack("host:a.example", "one", kNow + 1)) << "twice";
  const auto listed = store.list(kNow + 1);
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().expires, kNow + 600) << "it does not live longer for that";
  ASSERT_TRUE(store.use("host:a.example", "two", kNow + 1)->has_value());
  EXPECT_FALSE(*store.revoke(listed->front().id, kNow + 1));
  EXPECT_FALSE(*store.giveBack("host:a.example", "two", kNow + 1)) << "it was revoked";
}

TEST_F(ApprovalStore, OneTimeApprovalIsUsedUp) {
  CONFORMS("R-LEVEL-7");
  Store store = open();
  ASSERT_TRUE(store.grant({.what = "level:none", .by = "terminal"}, kNow));
  EXPECT_FALSE(*store.redeem("net:host", "", kNow));
  EXPECT_TRUE(*store.redeem("level:none", "", kNow));
  EXPECT_FALSE(*store.redeem("level:none", "", kNow));
}

TEST_F(ApprovalStore, TimedApprovalExpires) {
  CONFORMS("R-LEVEL-7");
  Store store = open();
  ASSERT_TRUE(store.grant({.what = "net:host", .scope = Scope::timed, .expires = kNow + 60, .by = "terminal"}, kNow));
  EXPECT_TRUE(*store.redeem("net:host", "", kNow + 59));
  EXPECT_TRUE(*store.redeem("net:host", "", kNow + 59));
  EXPECT_FALSE(*store.redeem("net:host", "", kNow + 60));
  EXPECT_FALSE(*store.redeem("net:host", "", kNow - 1));  // after the clock was set back
  EXPECT_FALSE(store.grant({.what = "net:host", .scope = Scope::timed, .expires = kNow}, kNow));
  EXPECT_FALSE(store.grant({.what = "net:host", .scope = Scope::timed, .expires = kNow + kMaxValidSeconds + 1}, kNow));
}

TEST_F(ApprovalStore, SessionApprovalIsValidOnlyInItsSession) {
  Store store = open();
  EXPECT_FALSE(store.grant({.what = "net:proxy", .scope = Scope::session}, kNow));
  ASSERT_TRUE(store.grant({.what = "net:proxy", .scope = Scope::session, .session = "s1"}, kNow));
  EXPECT_TRUE(*store.redeem("net:proxy", "s1", kNow));
  EXPECT_FALSE(*store.redeem("net:proxy", "s2", kNow));
  EXPECT_FALSE(*store.redeem("net:proxy", "", kNow));
}

TEST_F(ApprovalStore, RevokedApprovalIsRemoved) {
  Store store = open();
  const auto given = store.grant({.what = "host:example.org:443", .scope = Scope::timed, .expires = kNow + 60}, kNow);
  ASSERT_TRUE(given);
  EXPECT_EQ(store.list(kNow)->size(), 1U);
  EXPECT_FALSE(*store.revoke("0000", kNow));
  EXPECT_TRUE(*store.revoke(given->id, kNow));
  EXPECT_FALSE(*store.redeem("host:example.org:443", "", kNow));
  // Must match exactly this host and port.
  ASSERT_TRUE(store.grant({.what = "host:example.org:443", .scope = Scope::timed, .expires = kNow + 60}, kNow));
  for (const char* other :
       {"host:example.org", "host:example.org:80", "host:*.example.org:443", "host:EXAMPLE.org:443"}) {
    EXPECT_FALSE(*store.redeem(other, "", kNow)) << other;
  }
}

TEST_F(ApprovalStore, IsPrivateAndADamagedFileApprovesNothing) {
  Store store = open();
  ASSERT_TRUE(store.grant({.what = "level:none"}, kNow));
  struct stat status{};
  ASSERT_EQ(stat((directory_ / "approvals.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  for (const char* text :
       {"", "{}", "{\"format_version\":2,\"approvals\":[]}", "{\"format_version\":1,\"approvals\":[{}]}",
        "{\"format_version\":1,\"approvals\":[{\"id\":\"1\",\"what\":\"all:yes\",\"scope\":\"once\"}]}"}) {
    directory_.write("approvals.json", text);
    EXPECT_FALSE(store.redeem("level:none", "", kNow)) << text;
    EXPECT_FALSE(store.list(kNow)) << text;
  }
}

TEST_F(ApprovalStore, ConcurrentProcessesCannotUseOneApprovalTwice) {
  ASSERT_TRUE(open().grant({.what = "level:none"}, kNow));
  std::atomic<int> used = 0;
  std::vector<std::thread> threads;
  for (int count = 0; count < 8; ++count) {
    threads.emplace_back([&] {
      if (open().redeem("level:none", "", kNow).value_or(false)) ++used;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(used, 1);
}

}  // namespace caisson::approval
