// The model of plain directories beside a busy session: commands that write during a freeze, open ports, pooled
// sessions, and commits in between.
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "session/model.h"

namespace caisson::test {
namespace {

constexpr const char* kShowReal =
    "find . -mindepth 1 -printf '%y %p %l\\n' | LC_ALL=C sort; "
    "find . -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort -k2";

class LiveModel : public ModelTest {
 protected:
  void SetUp() override {
    ModelTest::SetUp();
    if (IsSkipped() || !store) return;
    for (const char* name : {"a", "d/a", "d/e/f", "g/h"}) workspace.write(name, std::string(name) + "\n");
    auto made = store->pool(options(), 2);
    ASSERT_TRUE(made) << made.error().message();
    pool.emplace(*std::move(made));
    takeAnother();
  }
  void TearDown() override {
    pool.reset();
    ModelTest::TearDown();
  }

  /// A pooled session shows the current real directory, whatever others changed.
  void takeAnother() {
    if (session) {
      ASSERT_TRUE(session->destroy()) << history;
    }
    auto taken = pool->take();
    ASSERT_TRUE(taken) << taken.error().message() << history;
    session.emplace(*std::move(taken));
    model = newCopy(workspace.path());
    checkpoints.clear();
    writers.clear();
    ports.clear();
    const auto none = session->processes();
    ASSERT_TRUE(none) << none.error().message();
    EXPECT_TRUE(none->empty()) << history;
  }

  /// Counts into a separate file, line by line, until it is killed.
  void startWriter() {
    const std::string file = "bg/" + std::to_string(next_writer_++);
    const auto exec = session->start(
        {.command = {"sh", "-c", "mkdir -p bg; i=0; while :; do i=$((i+1)); echo $i >> " + file + "; done"}});
    ASSERT_TRUE(exec) << exec.error().message() << history;
    writers[*exec] = file;
    for (int i = 0; i < 400 && !session->read(file); ++i) ::usleep(5'000);
    ASSERT_TRUE(session->read(file)) << "it never wrote" << history;
  }

  /// A writer's file has all counted lines without a gap; the model copies it.
  void takeOver(std::uint32_t exec) {
    const std::string& file = writers.at(exec);
    const auto status = session->status(exec);
    ASSERT_TRUE(status) << status.error().message() << history;
    EXPECT_FALSE(status->running) << history;
    const auto piece = session->read(file);
    ASSERT_TRUE(piece) << piece.error().message() << history;
    std::size_t at = 0;
    for (unsigned line = 1; at < piece->data.size(); ++line) {
      const std::string expected = std::to_string(line) + "\n";
      ASSERT_EQ(piece->data.compare(at, expected.size(), expected), 0) << file << " line " << line << history;
      at += expected.size();
    }
    inModel(model, "mkdir -p bg");
    std::ofstream(model + "/" + file) << piece->data;
    writers.erase(exec);
  }
  void takeOverAll() {
    while (!writers.empty() && !HasFatalFailure()) takeOver(writers.begin()->first);
  }

  void stopWriter() {
    const std::uint32_t exec = writers.begin()->first;
    ASSERT_TRUE(session->stop(exec, 0)) << history;
    ASSERT_TRUE(session->wait(exec, 10)) << history;
    takeOver(exec);
  }

  /// While something writes, a checkpoint succeeds only with `stop`, and then nothing writes.
  void checkpoint(bool stop) {
    const bool busy = !writers.empty();
    const auto made = session->checkpoint({}, stop ? WhenBusy::stop : WhenBusy::refuse);
    if (busy && !stop) {
      ASSERT_FALSE(made) << "frozen while a command wrote" << history;
      for (const auto& [exec, file] : writers) {
        const auto status = session->status(exec);
        ASSERT_TRUE(status && status->running) << "a refusal ends nothing" << history;
      }
      return;
    }
    ASSERT_TRUE(made) << made.error().message() << history;
    takeOverAll();
    checkpoints[made->name] = newCopy(model);
  }

  void restore() {
    auto chosen = checkpoints.begin();
    std::advance(chosen, pick(static_cast<unsigned>(checkpoints.size())));
    const auto back = session->restore(chosen->first, WhenBusy::stop);
    ASSERT_TRUE(back) << back.error().message() << history;
    writers.clear();  // killed, and their files are discarded
    model = newCopy(chosen->second);
  }

  void commitAll() {
    const auto report = session->commit();
    ASSERT_TRUE(report) << report.error().message() << history;
    EXPECT_TRUE(report->complete()) << history;
    EXPECT_EQ(inModel(workspace.path(), kShowReal), inModel(model, kShowReal)) << history;
    checkpoints
        .clear();  // the real directory shows through them where the session had not touched it (docs/sessions.md)
  }

  void commitOne() {
    const auto changes = session->diff();
    ASSERT_TRUE(changes) << changes.error().message() << history;
    if (changes->empty()) return;
    const std::string path = (*changes)[pick(static_cast<unsigned>(changes->size()))].path;
    const std::string before = newCopy(workspace.path());
    const auto report = session->commit({.paths = {path}});
    ASSERT_TRUE(report) << report.error().message() << history;
    EXPECT_TRUE(report->complete()) << path << history;
    const std::string here =
        "find " + path + " -printf '%y %p %l\\n' 2>/dev/null | LC_ALL=C sort; md5sum " + path + " 2>/dev/null; true";
    EXPECT_EQ(inModel(workspace.path(), here), inModel(model, here)) << path << history;
    // Nothing else except its parent directories.
    const std::string top = path.substr(0, path.find('/'));
    const std::string rest =
        "find . -mindepth 1 -path ./" + top + " -prune -o -type f -exec md5sum {} + | LC_ALL=C sort -k2";
    EXPECT_EQ(inModel(workspace.path(), rest), inModel(before, rest)) << path << history;
    checkpoints.clear();
  }

  void openOrClosePort() {
    const auto port = static_cast<std::uint16_t>(20000 + pick(4));
    if (ports.erase(port) > 0) {
      const auto closed = session->closePort(port);
      ASSERT_TRUE(closed) << closed.error().message() << history;
      return;
    }
    const auto opened = session->openPort(port);
    ASSERT_TRUE(opened) << opened.error().message() << history;
    EXPECT_NE(opened->host_port, 0);
    ports.insert(port);
  }

  void expectSame() {
    const char* prune = writers.empty() ? "" : " -path ./bg -prune -o";
    const std::string describe = "find . -mindepth 1" + std::string(prune) +
                                 " -printf '%y %m %p %l\\n' | LC_ALL=C sort; find ." + prune +
                                 " -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort -k2";
    ASSERT_EQ(output(*session, describe), inModel(model, describe)) << history;
    const auto open = session->openPorts();
    ASSERT_TRUE(open) << open.error().message() << history;
    std::set<std::uint16_t> numbers;
    for (const OpenPort& one : *open) numbers.insert(one.port);
    EXPECT_EQ(numbers, ports) << "ports stay over everything" << history;
    const auto all = session->processes();
    ASSERT_TRUE(all) << history;
    const auto running = std::count_if(all->begin(), all->end(), [](const ExecInfo& one) { return one.running; });
    EXPECT_EQ(static_cast<std::size_t>(running), writers.size()) << history;
  }

  std::optional<SessionPool> pool;
  std::optional<Session> session;
  std::string model, history;
  std::map<std::string, std::string> checkpoints;  // name -> copy
  std::map<std::uint32_t, std::string> writers;    // command -> its file
  std::set<std::uint16_t> ports;

 private:
  unsigned next_writer_ = 0;
};

TEST_P(LiveModel, BehavesLikeAPlainDirectoryUnderConcurrentUse) {
  for (int step = 0; step < 25 * stress(); ++step) {
    const unsigned kind = pick(14);
    std::string script;
    if (kind == 0 && writers.size() < 2) {
      history += "\nstart";
      startWriter();
    } else if (kind == 1 && !writers.empty()) {
      history += "\nstop";
      stopWriter();
    } else if (kind == 2 || kind == 3) {
      history += kind == 3 ? "\ncheckpoint --stop" : "\ncheckpoint";
      checkpoint(kind == 3);
    } else if (kind == 4 && !checkpoints.empty()) {
      history += "\nrestore";
      restore();
    } else if (kind == 5 && writers.empty()) {
      history += "\ncommit";
      commitAll();
    } else if (kind == 6 && writers.empty()) {
      history += "\ncommit one";
      commitOne();
    } else if (kind == 7 || kind == 8) {
      history += "\nport";
      openOrClosePort();
    } else if (kind == 9 && step % 3 == 0) {
      history += "\nanother";
      takeAnother();
    } else {
      for (int i = 0; i < 4; ++i) script += change() + " 2>/dev/null; ";
      script += "true";
      history += "\n" + script;
      output(*session, script);
      inModel(model, script);
    }
    if (!HasFatalFailure()) expectSame();
    if (HasFailure()) return;
  }
  ASSERT_TRUE(session->destroy());
}

INSTANTIATE_TEST_SUITE_P(Seeds, LiveModel, testing::Values(1U, 2U));

}  // namespace
}  // namespace caisson::test
