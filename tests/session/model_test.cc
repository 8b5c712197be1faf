// Random operations on sessions and on a model made of plain directory copies: never a difference.
// Not compared, since an overlay differs there by design: inode numbers, link counts, directory times and sizes.
#include <random>

#include "functional/session.h"

namespace caisson::test {
namespace {

constexpr const char* kDescribe =
    "find . -mindepth 1 -printf '%y %m %p %l\\n' | LC_ALL=C sort; "
    "find . -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort -k2";

struct Pair {
  Session session;
  std::string model;                               // directory that should look the same
  std::map<std::string, std::string> checkpoints;  // name -> copy
};

class SessionModel : public SessionTest, public testing::WithParamInterface<unsigned> {
 protected:
  std::string newCopy(const std::string& of) {
    const std::string to = models / ("m" + std::to_string(copies_++));
    EXPECT_EQ(runProgram({"cp", "-a", of, to}).exit_status, 0);
    return to;
  }
  static std::string inModel(const std::string& model, const std::string& script) {
    const RunOutput out = runProgram({"sh", "-c", "umask 022; " + script}, {.cwd = model});
    return out.out;
  }
  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  std::string path() {
    static constexpr const char* kNames[] = {"a", "b", "d", "d/a", "d/b", "d/e", "d/e/f", "g", "g/h"};
    return kNames[pick(9)];
  }
  /// One change that does the same in both; it may fail, then in both.
  std::string change() {
    const std::string one = path(), other = path(), word = std::to_string(pick(1000));
    switch (pick(10)) {
      case 0:
      case 1: return "echo " + word + " > " + one;
      case 2: return "echo " + word + " >> " + one;
      case 3: return "rm -f " + one;
      case 4: return "rm -rf " + one;
      case 5: return "mkdir -p " + one;
      case 6: return "test -f " + one + " && test ! -d " + other + " && mv -T " + one + " " + other;
      case 7: return "test -e " + one + " -o -L " + one + " || ln -s t" + word + " " + one;
      case 8: return "test -f " + one + " && chmod " + (pick(2) == 0 ? "755 " : "640 ") + one;
      default: return "test -d " + one + " && test ! -e n" + word + " && mv " + one + " n" + word;
    }
  }
  void expectSame(Pair& pair, const std::string& after) {
    ASSERT_EQ(output(pair.session, kDescribe), inModel(pair.model, kDescribe)) << "after: " << after;
  }

  const TempDir models;
  std::mt19937 random_{GetParam()};
  int copies_ = 0;
};

TEST_P(SessionModel, BehavesLikePlainDirectories) {
  for (const char* name : {"a", "d/a", "d/e/f", "g/h"}) workspace.write(name, std::string(name) + "\n");
  std::vector<Pair> pairs;
  pairs.push_back({create(), newCopy(workspace.path()), {}});
  const std::string begin = newCopy(workspace.path());
  std::string history;
  for (int step = 0; step < 60; ++step) {
    Pair& pair = pairs[pick(static_cast<unsigned>(pairs.size()))];
    const unsigned kind = pick(12);
    std::string done;
    if (kind == 0 && pair.checkpoints.size() < 6) {
      const auto made = pair.session.checkpoint();
      ASSERT_TRUE(made) << made.error().message() << history;
      pair.checkpoints[made->name] = newCopy(pair.model);
      done = "checkpoint " + made->name;
    } else if (kind == 1 && !pair.checkpoints.empty()) {
      auto chosen = pair.checkpoints.begin();
      std::advance(chosen, pick(static_cast<unsigned>(pair.checkpoints.size())));
      done = "restore " + chosen->first;
      const auto back = pair.session.restore(chosen->first);
      ASSERT_TRUE(back) << back.error().message() << history;
      pair.model = newCopy(chosen->second);
    } else if (kind == 2 && pairs.size() < 3) {
      auto other = pair.session.fork();
      ASSERT_TRUE(other) << other.error().message() << history;
      Pair second{*other, newCopy(pair.model), pair.checkpoints};
      pairs.push_back(std::move(second));
      done = "fork";
    } else if (kind == 3) {
      ASSERT_TRUE(pair.session.restore("begin")) << history;
      pair.model = newCopy(begin);
      done = "restore begin";
    } else if (kind == 4) {
      done = "write w";
      ASSERT_TRUE(pair.session.write("w/x", done));
      inModel(pair.model, "rm -rf w; mkdir w; printf 'write w' > w/x");
      output(pair.session, "rm -rf w; mkdir w");
      ASSERT_TRUE(pair.session.write("w/x", done));
    } else {
      for (int i = 0; i < 4; ++i) done += change() + " 2>/dev/null; ";
      done += "true";
      output(pair.session, done);
      inModel(pair.model, done);
    }
    history += "\n" + done;
    for (Pair& one : pairs) expectSame(one, done + "\nhistory:" + history);
    if (HasFailure()) return;
  }
  // What a commit leaves in the real directory is what the session shows.
  Pair& last = pairs.back();
  const auto report = last.session.commit();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->complete());
  const std::string show =
      "find . -mindepth 1 -printf '%y %p %l\\n' | LC_ALL=C sort; "
      "find . -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort -k2";
  EXPECT_EQ(inModel(workspace.path(), show), inModel(last.model, show)) << history;
}

INSTANTIATE_TEST_SUITE_P(Seeds, SessionModel, testing::Values(1U, 2U, 3U));

}  // namespace
}  // namespace caisson::test
