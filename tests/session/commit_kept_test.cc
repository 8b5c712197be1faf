// What commits replace is bounded together with what runs left in quarantine and as evidence.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

class CommitKept : public CommitTest {
 protected:
  void makeLarge(const std::string& name, std::uint64_t size) const {
    workspace.write(name, "");
    ASSERT_EQ(::truncate((workspace / name).c_str(), static_cast<off_t>(size)), 0);
    letFileTimesSettle();
  }
  /// A file below CAISSON_HOME, of 256 KiB.
  void plant(const std::string& directory) const {
    std::filesystem::create_directories(home_path + "/" + directory);
    std::ofstream(home_path + "/" + directory + "/file") << std::string(256 << 10, 'x');
  }
};

TEST_F(CommitKept, QuarantineAndEvidenceCountWithWhatCommitsReplace) {
  const std::uint64_t limit = KeptData{}.limit;
  makeLarge("large", limit - (128 << 10));
  Session session = create();
  output(session, "rm large");
  for (const char* directory : {"quarantined-files/sb-1", "caches/0123/_target/evidence"}) {
    plant(directory);
    const auto refused = session.commit({});
    ASSERT_FALSE(refused) << directory;
    EXPECT_NE(refused.error().message().find("--discard"), std::string::npos) << refused.error().message();
    EXPECT_TRUE(exists(workspace / "large")) << "nothing was written";
    const KeptData kept = store->keptData();
    EXPECT_EQ(kept.commits, 0U);
    EXPECT_GE(kept.quarantined + kept.evidence, 256U << 10);
    EXPECT_EQ((kept.quarantined > kept.evidence), (directory[0] == 'q'));
    const auto shown = cli({"info", "--json", session.id()}).json()["kept_data"];
    EXPECT_EQ(shown["quarantined"], kept.quarantined);
    EXPECT_EQ(shown["evidence"], kept.evidence);
    EXPECT_EQ(shown["limit"], limit);
    std::filesystem::remove_all(home_path + "/" + directory);
  }
  EXPECT_EQ(applied(commit(session)), "large\n");
  EXPECT_EQ(store->keptData().commits, limit - (128 << 10));
  const RunOutput info = cli({"info", session.id()});
  const std::uint64_t total = store->keptData().total();  // with the block of an empty directory
  EXPECT_GE(total, limit - (128 << 10));
  EXPECT_NE(info.out.find("kept data     " + std::to_string(total) + " of " + std::to_string(limit)), std::string::npos)
      << info.describe();
}

TEST_F(CommitKept, ConsentLetsACommitAboveTheBoundPass) {
  makeLarge("large", KeptData{}.limit + 1);
  Session session = create();
  output(session, "rm large");
  EXPECT_FALSE(session.commit({}));
  EXPECT_EQ(applied(commit(session, {.discard = true})), "large\n");
  EXPECT_FALSE(exists(workspace / "large"));
  EXPECT_EQ(store->keptData().total(), 0U);
  EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + home_path + "/replaced/*"}).out, "") << "no empty record";
}

TEST_F(CommitKept, CommitThatIsNotFinishedCounts) {
  makeLarge("large", 1 << 20);
  Session session = create();
  output(session, "rm large");
  const pid_t child = ::fork();
  if (child == 0) {
    session::step_observer = [](const char* name) {
      if (std::string_view(name) == "commit: moved away") ::kill(::getpid(), SIGKILL);
    };
    auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
    if (auto same = own->find(session.id())) (void)same->commit({});
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(store->keptData().commits, 1U << 20);
  EXPECT_TRUE(session.diff());  // finishes it
  EXPECT_EQ(store->keptData().commits, 1U << 20);
}

}  // namespace
}  // namespace caisson::test
