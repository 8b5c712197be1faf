// Random operations on a session and on a plain directory that must stay equal.
// Not compared, since an overlay differs there by design: inode numbers, link counts, directory times and sizes.
#pragma once

#include <random>

#include "functional/session.h"

namespace caisson::test {

inline constexpr const char* kDescribe =
    "find . -mindepth 1 -printf '%y %m %p %l\\n' | LC_ALL=C sort; "
    "find . -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort -k2";

class ModelTest : public SessionTest, public testing::WithParamInterface<unsigned> {
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
  /// One change, applied to both; it may fail, but then in both.
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

  const TempDir models;
  std::mt19937 random_{GetParam()};
  int copies_ = 0;
};

}  // namespace caisson::test
