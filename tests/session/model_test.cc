// Random operations on sessions and on a model of plain directory copies: no differences.
#include <sys/wait.h>
#include <unistd.h>

#include "session/layers/squash.h"
#include "session/model.h"

namespace caisson::test {
namespace {

struct Pair {
  Session session;
  std::string model;                               // directory that must look the same
  std::map<std::string, std::string> checkpoints;  // name -> copy
};

class SessionModel : public ModelTest {
 protected:
  /// Merges the layers of a session, in a separate process.
  void squash(const Session& session) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto place = session::SessionPaths::open(caissonBinary());
      if (!place) ::_exit(1);
      auto internals = std::make_shared<session::Store>(std::move(*place));
      ::_exit(session::squash(internals, session.id(), {.least = 2, .wait = true}) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  /// Compares reading and listing from outside with the model.
  void expectSameFromOutside(Pair& pair, const std::string& history) {
    const std::string one = path();
    const auto piece = pair.session.read(one);
    const bool file =
        runProgram({"sh", "-c", "test -f " + one + " -a ! -L " + one}, {.cwd = pair.model}).exit_status == 0;
    EXPECT_EQ(piece.has_value(), file) << one << history;
    if (piece && file) {
      EXPECT_EQ(piece->data, readFile(pair.model + "/" + one)) << one << history;
    }
    const auto entries = pair.session.listFiles("");
    ASSERT_TRUE(entries) << history;
    std::string names;
    for (const FileEntry& entry : *entries) names += entry.name + "\n";
    EXPECT_EQ(names, inModel(pair.model, "ls -A | LC_ALL=C sort")) << history;
  }
  /// A diff lists exactly the differences between two copies. Unchanged parent directories are not listed.
  void expectSameDiff(Pair& pair, const std::string& since, const std::string& old, const std::string& history) {
    const auto changes = pair.session.diff(since);
    ASSERT_TRUE(changes) << changes.error().message() << history;
    std::string told;
    for (const Change& change : *changes) {
      if (change.kind != ChangeKind::modified || change.type != "directory") {
        told += std::string(1, "AMD"[static_cast<int>(change.kind)]) + " " + change.path + "\n";
      }
    }
    const std::string expected =
        "import os, stat, sys\n"
        "old, new = sys.argv[1:]\n"
        "def look(p):\n"
        "  try: s = os.lstat(p)\n"
        "  except OSError: return None\n"
        "  t = stat.S_IFMT(s.st_mode)\n"
        "  if t == stat.S_IFDIR: return ('d',)\n"
        "  if t == stat.S_IFLNK: return ('l', os.readlink(p))\n"
        "  return ('f', s.st_mode & 0o777, open(p, 'rb').read())\n"
        "out = []\n"
        "def walk(r):\n"
        "  names = set()\n"
        "  for side in (old, new):\n"
        "    d = os.path.join(side, r)\n"
        "    if os.path.isdir(d) and not os.path.islink(d): names |= set(os.listdir(d))\n"
        "  for n in names:\n"
        "    p = os.path.join(r, n)\n"
        "    a, b = look(os.path.join(old, p)), look(os.path.join(new, p))\n"
        "    if b is None: out.append((p, 'D')); continue\n"
        "    if a is None: out.append((p, 'A'))\n"
        "    elif a != b and b != ('d',): out.append((p, 'M'))\n"
        "    if b == ('d',): walk(p)\n"
        "walk('')\n"
        "print(''.join('%s %s\\n' % (k, p) for p, k in sorted(out)), end='')\n";
    const RunOutput out = runProgram({"python3", "-c", expected, old, pair.model});
    ASSERT_EQ(out.exit_status, 0) << out.err;
    EXPECT_EQ(told, out.out) << "since " << since << history;
  }
  void expectSame(Pair& pair, const std::string& after) {
    ASSERT_EQ(output(pair.session, kDescribe), inModel(pair.model, kDescribe)) << "after: " << after;
  }
};

TEST_P(SessionModel, BehavesLikePlainDirectories) {
  for (const char* name : {"a", "d/a", "d/e/f", "g/h"}) workspace.write(name, std::string(name) + "\n");
  std::vector<Pair> pairs;
  pairs.push_back({create(), newCopy(workspace.path()), {}});
  const std::string begin = newCopy(workspace.path());
  std::string history;
  for (int step = 0; step < 15 * stress(); ++step) {
    Pair& pair = pairs[pick(static_cast<unsigned>(pairs.size()))];
    const unsigned kind = pick(14);
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
    } else if (kind == 12) {
      done = "squash";
      squash(pair.session);
    } else if (kind == 13 && pairs.size() > 1) {
      done = "destroy";
      const auto at = static_cast<std::ptrdiff_t>(pick(static_cast<unsigned>(pairs.size())));
      ASSERT_TRUE(pairs[static_cast<std::size_t>(at)].session.destroy()) << history;
      pairs.erase(pairs.begin() + at);
    } else {
      for (int i = 0; i < 4; ++i) done += change() + " 2>/dev/null; ";
      done += "true";
      output(pair.session, done);
      inModel(pair.model, done);
    }
    history += "\n" + done;
    for (Pair& one : pairs) {
      expectSame(one, done + "\nhistory:" + history);
      expectSameFromOutside(one, history);
      if (!hasProgram("python3")) continue;
      expectSameDiff(one, "begin", begin, history);
      for (const auto& [name, copy] : one.checkpoints) expectSameDiff(one, name, copy, history);
    }
    if (HasFailure()) return;
  }
  // After a commit the real directory equals the session's view.
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
