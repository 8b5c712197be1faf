// Random histories of two sessions and the host on one workspace against a reference (commit_reference.h): commits of
// everything and of some paths, resolved conflicts, changes by the host in the middle of a commit, kill -9 at a random
// step of a commit and of its undoing. CAISSON_HISTORIES sets their number, CAISSON_FIRST_HISTORY the first seed.
#include "session/commit_reference.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>

#include "functional/session.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

constexpr const char* kDirectories[] = {"d", "d/e", "d/e/f", "g", "g/h"};
constexpr const char* kFiles[] = {"a", "b", "d/a", "d/b", "d/e/a", "d/e/f/a", "g/a", "g/h/a", "d/.env"};

/// What happens at a step of a commit: kill the process, or let the host do something, once.
std::function<void()> at_step;
int steps_left = 0;

void countStep(const char* /*name*/) {
  if (--steps_left == 0) at_step();
}

struct Member {
  std::string name, id;
  std::optional<Session> session;
  Knowledge knowledge;
  Tree view;
  struct Done {
    Tree begun, left;
    bool latest = true;  ///< the workspace has not changed since
  };
  std::vector<Done> commits;
};

class CommitReference : public SessionTest {
 protected:
  void TearDown() override {
    if (!elsewhere.empty()) std::filesystem::remove_all(elsewhere);
    SessionTest::TearDown();
  }

  unsigned pick(unsigned below) { return static_cast<unsigned>(random_() % below); }
  bool chance(unsigned percent) { return pick(100) < percent; }
  template <std::size_t N>
  std::string pick(const char* const (&names)[N]) {
    return names[pick(N)];
  }
  std::string word(const std::string& who) { return who + std::to_string(++words_); }
  void log(const std::string& line) { log_ += line + "\n"; }
  void problem(const std::string& text) {
    if (!text.empty() && problem_.empty()) problem_ = text;
  }

  /// A shell command that changes something.
  std::string change(const std::string& who) {
    const std::string file = pick(kFiles), other_file = pick(kFiles), text = word(who);
    const std::string directory = pick(kDirectories), other = pick(kDirectories);
    switch (pick(24)) {
      case 0:
      case 1:
      case 2: return "echo " + text + " > " + file;
      case 3:
      case 4: return "echo " + text + " >> " + file;
      case 5: return "rm -f " + file;
      case 6: return "mkdir -p " + directory;
      case 7:
      case 8: return "rm -rf " + directory;
      case 9: return "rm -rf " + directory + "; mkdir " + directory + "; echo " + text + " > " + directory + "/n";
      case 10: return "rm -rf " + directory + "; echo " + text + " > " + directory;
      case 11: return "rm -rf " + file + "; ln -s " + text + " " + file;
      case 12: return "test -f " + file + " && chmod " + (chance(50) ? "600 " : "644 ") + file;
      case 13: return "test -f " + file + " && chmod " + (chance(50) ? "755 " : "640 ") + file;
      case 14: return "test -d " + directory + " && chmod " + (chance(50) ? "700 " : "755 ") + directory;
      case 15:
      case 16: return "mv -T " + file + " " + other_file;
      case 17:
      case 18: return "mv -T " + directory + " " + other + "/" + text;
      case 19: return "mv -T " + directory + " " + directory + "." + text;
      case 20: return "rm -rf " + file + "; echo " + text + " > " + file + ".new; mv -T " + file + ".new " + file;
      case 21: return "test -f " + file + " && { rm -f " + other_file + "; ln " + file + " " + other_file + "; }";
      default: return "mv -T " + directory + " x && mv -T " + other + " " + directory + "; mv -T x " + other;
    }
  }

  void hostChange() {
    const std::string file = top_ + "/" + pick(kFiles);
    if (chance(10)) {
      const std::string note = word("note");
      log("host: note on " + file);
      (void)::lsetxattr(file.c_str(), "user.note", note.data(), note.size(), 0);
    } else if (chance(10)) {
      log("host: old times of " + file);
      runProgram({"touch", "-c", "-h", "-d", "2001-01-01", file});
    } else {
      const std::string script = change("host");
      log("host: " + script);
      runProgram({"sh", "-c", "umask 022; " + script}, {.cwd = top_});
    }
    for (Member& member : members_) {
      for (Member::Done& done : member.commits) done.latest = false;
    }
  }

  void work(Member& member) {
    std::string script = "umask 022; ";
    for (unsigned i = 0; i <= pick(3); ++i) script += "(" + change(member.name) + ") 2>/dev/null; ";
    log(member.name + ": " + script);
    exec(*member.session, script + "true");
  }

  /// What the session adds and changes, from its layers: a live overlay shows in part what the host removed below it.
  Tree viewOf(Member& member) {
    std::string packed;
    EXPECT_TRUE(member.session->exportTar({}, [&](std::string_view piece) {
      packed += piece;
      return true;
    }));
    const TempDir place;
    EXPECT_EQ(runProgram({"tar", "-x", "-p"}, {.stdin_data = packed, .cwd = place.path()}).exit_status, 0);
    return readTree(place.path());
  }

  void create(const std::string& name) {
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.workspace.path", top_));
    const Tree begun = readTree(top_);
    auto made = store->create(wanted);
    ASSERT_TRUE(made) << made.error().message();
    const std::string id = made->id();
    members_.push_back({.name = name, .id = id, .session = std::move(*made), .knowledge = Knowledge(begun)});
    if (chance(25)) {  // as in a workspace that is too large for a whole record
      const std::string record = home_path + "/sessions/" + id + "/directories";
      const std::string text = readFile(record);
      const std::size_t end = text.empty() ? 0 : text.rfind('\0', pick(static_cast<unsigned>(text.size())));
      log(name + ": record of directories cut");
      EXPECT_EQ(::truncate(record.c_str(), end == std::string::npos ? 0 : static_cast<off_t>(end + 1)), 0);
    }
  }

  /// Runs `action` in a process that is killed at a random step. Whether it was.
  bool killedIn(const std::function<void(SessionStore&)>& action) {
    const int step = static_cast<int>(1 + pick(60));
    const pid_t child = ::fork();
    if (child == 0) {
      auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
      steps_left = step;
      at_step = [] { ::kill(::getpid(), SIGKILL); };
      session::step_observer = countStep;
      if (own) action(*own);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
  }

  CommitRequest request() {
    CommitRequest wanted;
    for (unsigned i = chance(25) ? 1 + pick(3) : 0; i > 0; --i) {
      wanted.paths.push_back(chance(60) ? pick(kFiles) : pick(kDirectories));
    }
    if (chance(15)) wanted.theirs.push_back(pick(kFiles));
    if (chance(10)) wanted.ours.push_back(pick(kDirectories));
    wanted.discard = chance(4);
    return wanted;
  }

  static CommitFacts factsOf(const Member& member, const CommitRequest& request, const CommitReport& report) {
    CommitFacts facts{.shown = report.applied, .view = member.view};
    facts.named.insert(request.paths.begin(), request.paths.end());
    facts.theirs.insert(request.theirs.begin(), request.theirs.end());
    return facts;
  }

  void noteDone(Member& member, const Tree& before, const Tree& after, bool discarded) {
    if (differences(before, after).empty()) return;
    for (const auto& [path, object] : after) {
      const auto old = before.find(path);
      if (old == before.end() || !old->second.isSame(object)) member.knowledge.add(path, object);
    }
    for (Member& other : members_) {
      for (Member::Done& done : other.commits) done.latest = false;
    }
    if (discarded) {
      member.commits.clear();  // the next uncommit would undo the one before
    } else {
      member.commits.push_back({before, after});
    }
  }

  void commit(Member& member) {
    CommitRequest wanted = request();
    CommitRequest dry = wanted;
    dry.dry_run = true;
    const auto planned = member.session->commit(dry);
    if (!planned) return log(member.name + ": refused: " + planned.error().message());
    if (chance(40)) wanted.expect = planned->digest;
    member.view = viewOf(member);
    const Tree before = readTree(top_);
    const unsigned kind = pick(100);
    if (kind < 30) return killedCommit(member, wanted, *planned, before);
    if (kind < 50 && wanted.theirs.empty()) return racedCommit(member, wanted, before);
    const auto report = member.session->commit(wanted);
    const Tree after = readTree(top_);
    log(member.name + ": commit " + (report ? std::to_string(report->applied.size()) : report.error().message()));
    if (!report) return problem("the commit failed: " + report.error().message());
    applied_ += report->applied.size();
    problem(checkCommit(before, after, member.knowledge, factsOf(member, wanted, *report)));
    if (!wanted.expect.empty() && report->digest != wanted.expect) problem("another digest than expected");
    noteDone(member, before, after, wanted.discard);
  }

  void killedCommit(Member& member, const CommitRequest& wanted, const CommitReport& planned, const Tree& before) {
    const bool killed = killedIn([&](SessionStore& own) {
      if (auto same = own.find(member.id)) (void)same->commit(wanted);
    });
    const Tree between = readTree(top_);
    log(member.name + ": commit of " + std::to_string(planned.applied.size()) + (killed ? " killed" : " in a process"));
    if (chance(30)) {  // the host changes something before it is finished
      hostChange();
      const Tree changed = readTree(top_);
      const auto unseen = unseenContents(changed, member.knowledge);
      EXPECT_TRUE(member.session->diff());
      if (wanted.theirs.empty()) problem(checkContents(unseen, readTree(top_)));
      member.commits.clear();
      for (const auto& [path, object] : readTree(top_)) {
        const auto there = changed.find(path);
        if (there == changed.end() || !there->second.isSame(object)) member.knowledge.add(path, object);
      }
      for (const ManifestEntry& entry : planned.applied) {
        const auto there = between.find(entry.path), was = before.find(entry.path);
        if (there != between.end() && (was == before.end() || !was->second.isSame(there->second))) {
          member.knowledge.add(entry.path, there->second);
        }
      }
      return;
    }
    EXPECT_TRUE(member.session->diff());  // finishes it
    const Tree after = readTree(top_);
    const CommitFacts facts = factsOf(member, wanted, planned);
    problem(checkOldOrNew(before, between, after));
    problem(checkCommit(before, after, member.knowledge, facts));
    problem(checkAllOrNothing(before, after, facts));
    noteDone(member, before, after, wanted.discard);
  }

  /// The host changes something at a random step of the commit.
  void racedCommit(Member& member, const CommitRequest& wanted, const Tree& before) {
    std::set<std::string> contents = unseenContents(before, member.knowledge);
    Tree changed = before;
    steps_left = static_cast<int>(1 + pick(25));
    at_step = [&] {
      const Tree old = readTree(top_);
      hostChange();
      changed = readTree(top_);
      std::set<std::string> was, is;  // what the host itself removed is not lost
      for (const auto& [path, object] : old) was.insert(object.content);
      for (const auto& [path, object] : changed) is.insert(object.content);
      for (const std::string& content : was) {
        if (!is.contains(content)) contents.erase(content);
      }
      for (const std::string& content : is) {
        if (!was.contains(content)) contents.insert(content);
      }
    };
    session::step_observer = countStep;
    const auto report = member.session->commit(wanted);
    session::step_observer = nullptr;
    const Tree after = readTree(top_);
    log(member.name + ": commit beside the host: " + (report ? "done" : report.error().message()));
    problem(checkContents(contents, after));
    member.commits.clear();
    for (const auto& [path, object] : after) {
      const auto there = changed.find(path), view = member.view.find(path);
      const bool ours = view != member.view.end() && view->second.content == object.content;
      if (ours && (there == changed.end() || !there->second.isSame(object))) member.knowledge.add(path, object);
      const auto was = before.find(path);
      if (ours && report && (was == before.end() || !was->second.isSame(object))) member.knowledge.add(path, object);
    }
  }

  void uncommit(Member& member) {
    if (member.commits.empty()) return;
    const Member::Done done = member.commits.back();
    const Tree before = readTree(top_);
    if (chance(25)) {
      const bool killed = killedIn([&](SessionStore& own) { (void)own.uncommit(member.id); });
      log(member.name + ": uncommit" + (killed ? " killed" : " in a process"));
      const auto list = store->replaced(member.id);
      const bool undone = !killed || (list && std::ranges::count(*list, false, &ReplacedByCommit::undone) <
                                                  static_cast<std::ptrdiff_t>(member.commits.size()));
      if (!undone) {
        EXPECT_TRUE(store->uncommit(member.id));
      }
      if (undone) member.commits.clear();
    } else {
      const auto report = store->uncommit(member.id);
      log(member.name + ": uncommit " + (report ? std::to_string(report->applied.size()) : report.error().message()));
      if (!report) return problem("the uncommit failed: " + report.error().message());
      if (done.latest) {
        for (const NotCommitted& one : report->conflicts) problem("uncommit: " + one.path + ": " + one.reason);
      }
    }
    const Tree after = readTree(top_);
    problem(checkUncommit(done.begun, done.left, before, after));
    if (done.latest) problem(differences(done.begun, after, true));
    if (!member.commits.empty()) member.commits.pop_back();
    for (Member& other : members_) {
      for (Member::Done& one : other.commits) one.latest = false;
    }
    ++undone_;
  }

  void run(unsigned seed) {
    random_.seed(seed);
    log_.clear();
    problem_.clear();
    members_.clear();
    const TempDir place;
    top_ = place.path();
    if (chance(10)) {
      char name[] = "/dev/shm/caisson-test-XXXXXX";
      if (::mkdtemp(name) != nullptr) top_ = elsewhere = name;
      EXPECT_EQ(::chmod(name, 0755), 0);
    }
    const std::string begin =
        "umask 022; mkdir -p d/e/f g/h; for f in a b d/a d/b d/e/a d/e/f/a g/a g/h/a; do echo begin $f > $f; done; "
        "echo secret > d/.env";
    EXPECT_EQ(runProgram({"sh", "-c", begin}, {.cwd = top_}).exit_status, 0);
    for (int i = 0; i < 3; ++i) hostChange();
    sleepFor(std::chrono::milliseconds(10));
    create("one");
    create("two");
    for (int i = 0; i < 14 && problem_.empty() && !HasFailure(); ++i) step();
    for (Member& member : members_) {
      if (problem_.empty()) commit(member);
      EXPECT_TRUE(member.session->destroy());
    }
    if (!elsewhere.empty()) std::filesystem::remove_all(elsewhere);
    elsewhere.clear();
    EXPECT_EQ(problem_, "") << "seed " << seed << "\n" << log_;
  }

  void step() {
    Member& member = members_[pick(2)];
    const unsigned what = pick(100);
    if (what < 25) return hostChange();
    if (what < 60) return work(member);
    if (what < 85) {
      commit(member);
      return chance(40) ? uncommit(member) : void();
    }
    if (what < 97) return uncommit(member);
    const auto points = member.session->checkpoints();
    if (points && !points->empty()) {
      log(member.name + ": restore");
      EXPECT_TRUE(member.session->restore("p"));
      return;
    }
    log(member.name + ": checkpoint");
    EXPECT_TRUE(member.session->checkpoint("p"));
  }

  std::mt19937 random_;
  std::string top_, elsewhere, log_, problem_;
  std::vector<Member> members_;
  int words_ = 0;
  std::size_t applied_ = 0, undone_ = 0;
};

unsigned numberOf(const char* variable, unsigned otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

TEST_F(CommitReference, RandomHistoriesLoseNothingAndApplyNothingUnshown) {
  const unsigned first = numberOf("CAISSON_FIRST_HISTORY", 1), count = numberOf("CAISSON_HISTORIES", 8);
  for (unsigned seed = first; seed < first + count && !HasFailure(); ++seed) run(seed);
  EXPECT_GT(applied_, count) << "commits that leave everything out prove nothing";
  EXPECT_GT(undone_, count / 8);
  RecordProperty("applied", static_cast<int>(applied_));
}

}  // namespace
}  // namespace caisson::test
