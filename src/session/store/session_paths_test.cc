#include "session/store/session_paths.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

TEST(SessionNames, IdsHaveOneForm) {
  EXPECT_TRUE(isId("cs-0123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(isId("cs-0123456789ABCDEF0123456789abcdef"));
  EXPECT_FALSE(isId("cs-0123456789abcdef0123456789abcde"));
  EXPECT_FALSE(isId("cs-0123456789abcdef0123456789abcdef0"));
  EXPECT_FALSE(isId("cs-../../../../../../../../../../xx"));
  EXPECT_FALSE(isId(""));
}

TEST(SessionNames, BeginningOfAnIdHasFourDigits) {
  EXPECT_TRUE(isIdPrefix("cs-0123"));
  EXPECT_TRUE(isIdPrefix("cs-0123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(isIdPrefix("cs-012"));
  EXPECT_FALSE(isIdPrefix("cs-"));
  EXPECT_FALSE(isIdPrefix("cs-012g"));
  EXPECT_FALSE(isIdPrefix("0123"));
}

TEST(SessionNames, NamesAreSafeAsFileNames) {
  for (const char* good : {"a", "work", "My-1_2.3", "9"}) EXPECT_TRUE(checkName("call", good)) << good;
  for (const char* bad :
       {"", ".", "..", ".hidden", "-option", "a/b", "a b", "a\nb", "\xC3\xA4", "cs-0123456789abcdef0123456789abcdef"}) {
    EXPECT_FALSE(checkName("call", bad)) << bad;
  }
  EXPECT_TRUE(checkName("call", std::string(64, 'a')));
  EXPECT_FALSE(checkName("call", std::string(65, 'a')));
  EXPECT_FALSE(checkName("call", std::string_view("a\0b", 3)));
}

TEST(SessionLock, HeldLockIsBusyUntilItIsReleased) {
  const sys::fixtures::TempDir directory;
  const auto root = sys::RootDir::open(directory.path());
  ASSERT_TRUE(root);
  auto held = lockFile(*root, "lock", false);
  ASSERT_TRUE(held);
  const auto second = lockFile(*root, "lock", false);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().sys_errno, EWOULDBLOCK);
  held->reset();
  EXPECT_TRUE(lockFile(*root, "lock", false));
}

}  // namespace
}  // namespace caisson::session
