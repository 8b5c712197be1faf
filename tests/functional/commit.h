// Short ways to commit a session's changes and to look at the report.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "functional/session.h"

namespace caisson::test {

/// An access list in the kernel's format, with an entry for the user `id` unless `user` is 0.
inline std::string accessList(unsigned owner, unsigned user, unsigned group, unsigned mask, std::uint32_t id = 12345) {
  std::string list("\2\0\0\0", 4);
  const auto add = [&](std::uint16_t tag, std::uint16_t rights, std::uint32_t whose) {
    list.append(reinterpret_cast<const char*>(&tag), 2).append(reinterpret_cast<const char*>(&rights), 2);
    list.append(reinterpret_cast<const char*>(&whose), 4);
  };
  add(0x01, static_cast<std::uint16_t>(owner), 0xffffffff);
  if (user != 0) add(0x02, static_cast<std::uint16_t>(user), id);
  add(0x04, static_cast<std::uint16_t>(group), 0xffffffff);
  add(0x10, static_cast<std::uint16_t>(mask), 0xffffffff);
  add(0x20, 0, 0xffffffff);
  return list;
}

/// Waits until what is written from now on gets a time that is later, by more than a tick, than that of what was
/// written before. The clock of file times can stand still for long where processors are emulated.
inline void letFileTimesSettle() {
  constexpr std::int64_t kTick = 10'000'000;
  const auto read = [](clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::int64_t{1'000'000'000} * time.tv_sec + time.tv_nsec;
  };
  const std::int64_t then = read(CLOCK_REALTIME) + kTick;
  while (read(CLOCK_REALTIME_COARSE) <= then) sleepFor(std::chrono::milliseconds(1));
}

class CommitTest : public SessionTest {
 protected:
  static CommitReport commit(Session& session, const CommitRequest& request = {}) {
    auto report = session.commit(request);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *std::move(report) : CommitReport{};
  }
  static std::string paths(const std::vector<NotCommitted>& list) {
    std::string text;
    for (const NotCommitted& one : list) text += one.path + "\n";
    return text;
  }
  /// What was not committed and why.
  static std::string leftOut(const CommitReport& report) {
    std::string text;
    for (const auto* list : {&report.conflicts, &report.held, &report.skipped})
      for (const NotCommitted& one : *list) text += one.path + ": " + one.reason + "\n";
    return text;
  }
  static std::string applied(const CommitReport& report) {
    std::string text;
    for (const Change& change : report.applied) text += change.path + "\n";
    return text;
  }
  static bool isHeld(const CommitReport& report, const std::string& path) {
    return std::ranges::any_of(report.held, [&](const NotCommitted& one) { return one.path == path; });
  }
  static mode_t modeOf(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  /// Nothing of a commit is left: neither beside the files nor in the session.
  void expectNoLeftovers(const Session& session) const {
    EXPECT_EQ(runProgram({"find", workspace.path(), "-name", ".caisson-*"}).out, "");
    EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + home_path + "/sessions/" + session.id() + " | grep '^commit[.]'"}).out,
              "");
  }
};

/// With a directory on another file system than CAISSON_HOME.
template <class Test>
class AcrossMounts : public Test {
 protected:
  void SetUp() override {
    Test::SetUp();
    if (testing::Test::IsSkipped()) return;
    char name[] = "/dev/shm/caisson-test-XXXXXX";
    requireOrSkip(::mkdtemp(name) != nullptr, "cannot write to /dev/shm");
    if (testing::Test::IsSkipped()) return;
    elsewhere = name;
    ASSERT_EQ(::chmod(name, 0755), 0);
    struct stat here{}, there{};
    ASSERT_EQ(::stat(this->home.path().c_str(), &here), 0);
    ASSERT_EQ(::stat(name, &there), 0);
    requireOrSkip(here.st_dev != there.st_dev, "/dev/shm is on the same file system");
  }
  void TearDown() override {
    Test::TearDown();
    if (elsewhere.empty()) return;
    (void)::chmod(elsewhere.c_str(), 0755);
    std::filesystem::remove_all(elsewhere);
  }
  void put(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(elsewhere + "/" + name).parent_path());
    std::ofstream(elsewhere + "/" + name) << text;
  }
  std::string elsewhere;
};

}  // namespace caisson::test
