#include "supervise/limits/closed_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "support/temp_dir.h"

namespace caisson::supervise {
namespace {

using std::chrono::seconds;

class ClosedTree : public testing::Test {
 protected:
  void SetUp() override {
    directory.write("closed/deeper/file", std::string(100'000, 'x'));
    ASSERT_EQ(::chmod((directory / "closed/deeper").c_str(), 0300), 0);
    ASSERT_EQ(::chmod((directory / "closed").c_str(), 0400), 0);
    top = sys::Fd(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override {
    ::chmod((directory / "closed").c_str(), 0700);
    ::chmod((directory / "closed/deeper").c_str(), 0700);
  }
  const test::TempDir directory;
  sys::Fd top;
};

TEST_F(ClosedTree, IsMeasuredByItsHelper) {
  const auto size = ClosedSizes().measure(top.get(), {}, seconds(20));
  if (!size) GTEST_SKIP() << "no user namespace can be made here";
  EXPECT_EQ(size->inodes, 3U);
  EXPECT_GE(size->bytes, 100'000U);
}

TEST_F(ClosedTree, HasASizeOnceTheHelperIsDone) {
  ClosedSizes sizes;
  EXPECT_FALSE(sizes.last(top.get()));
  sizes.request(top.get(), {}, 1000, 10);
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  std::optional<ClosedSizes::Known> known;
  while (!(known = sizes.last(top.get())) && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
  ASSERT_TRUE(known);
  if (known->size.hidden) GTEST_SKIP() << "no user namespace can be made here";
  EXPECT_EQ(known->size.inodes, 3U);
  EXPECT_EQ(known->free_bytes, 1000U);
}

TEST_F(ClosedTree, ReportWithoutAHelperIsIncomplete) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[1]);
  ClosedMeasure measure{sys::Fd(ends[0])};
  const auto report = measure.wait(seconds(20));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->size.hidden);
}

}  // namespace
}  // namespace caisson::supervise
