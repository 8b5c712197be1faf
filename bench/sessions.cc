// The cost of sessions, compared with fork+exec, the floor of a launch, and plain directories.
//
//   bench/sessions --caisson build/caisson --floor build/bench/floor [--only
//   exec,processor,create,pool,layers,many,files]
//   [--files N]
//
// Every row prints its target from docs/performance.md and whether it was met. State and workspaces are in a private
// directory below $TMPDIR.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "caisson/session_pool.h"
#include "process.h"
#include "scratch.h"
#include "session_rows.h"
#include "statistics.h"

namespace bench {
namespace {

// The cost of exec, relative to fork+exec, without a supervisor process between caller and sandbox. The supervisor may
// cost another 0.1 ms.
#if defined(__aarch64__)
constexpr double kExecRatio = 1.91;
#else
constexpr double kExecRatio = 1.5;
#endif

void row(const std::string& name, const std::string& value, const std::string& target, bool met) {
  std::printf("| %-62s | %-24s | %-22s | %s |\n", name.c_str(), value.c_str(), target.c_str(),
              met ? "met" : "**missed**");
  std::fflush(stdout);
}

std::string text(const char* format, double a, double b = 0) {
  char room[96];
  std::snprintf(room, sizeof(room), format, a, b);
  return room;
}

/// Runs each piece of work in turn, repeatedly, so that other load on the machine affects all of them alike.
std::vector<Summary> alternate(unsigned rounds, const std::vector<std::function<double()>>& works) {
  std::vector<std::vector<double>> samples(works.size());
  for (unsigned round = 0; round < rounds + 10; ++round) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      const double took = works[i]();
      if (round >= 10) samples[i].push_back(took);
    }
  }
  std::vector<Summary> results;
  for (const auto& sample : samples) results.push_back(summarize(sample));
  return results;
}

double timed(const std::function<void()>& work) {
  const double begin = nowMs();
  work();
  return nowMs() - begin;
}

double execOnce(caisson::Session& session) {
  return timed([&] {
    const auto result = session.exec(
        {.command = {"/usr/bin/true"}, .out = caisson::StreamMode::discard, .err = caisson::StreamMode::discard});
    if (!result || exitStatus(*result) != 0) fatal("exec failed");
  });
}

double spawnOnce() { return timeOnce({.argv = {"/usr/bin/true"}}).value_or(0); }

double rusageMs(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

/// CPU time, which other load changes less than wall time: of the caller, the supervisor, pid 1 and the command,
/// compared with that of fork+exec.
void measureProcessorTime(const Setting& setting) {
  constexpr int kRounds = 300;
  caisson::Session session = setting.create();
  for (int i = 0; i < 20; ++i) (void)execOnce(session);
  double inside = -supervisionCpuMs(setting, session) - rusageMs(RUSAGE_SELF);
  for (int i = 0; i < kRounds; ++i) {
    const auto result = session.exec(
        {.command = {"/usr/bin/true"}, .out = caisson::StreamMode::discard, .err = caisson::StreamMode::discard});
    if (!result || exitStatus(*result) != 0) fatal("exec failed");
    inside += result->usage.user_cpu_ms + result->usage.system_cpu_ms;
  }
  inside += supervisionCpuMs(setting, session) + rusageMs(RUSAGE_SELF);
  double outside = -rusageMs(RUSAGE_SELF) - rusageMs(RUSAGE_CHILDREN);
  for (int i = 0; i < kRounds; ++i) (void)spawnOnce();
  outside += rusageMs(RUSAGE_SELF) + rusageMs(RUSAGE_CHILDREN);
  row("processor time of fork+exec and of exec in a session, library",
      text("%.3f and %.3f ms", outside / kRounds, inside / kRounds) + text(", %.2fx", inside / outside), "", true);
  if (!session.destroy()) fatal("destroy failed");
}

void measureExec(const Setting& setting) {
  caisson::Session session = setting.create();
  const Command line{.argv = {setting.caisson, "session", "exec", session.id(), "--", "/usr/bin/true"},
                     .environment = {"CAISSON_HOME=" + setting.home, "PATH=/usr/bin:/bin"}};
  const auto results =
      alternate(400, {spawnOnce, [&] { return execOnce(session); }, [&] { return timeOnce(line).value_or(0); }});
  const double base = results[0].median;
  row("fork+exec of true, for comparison", text("%.3f ms", base), "", true);
  row("exec in a live session, library", text("%.3f ms, %.2fx", results[1].median, results[1].median / base),
      text("%.2fx + 0.1 ms", kExecRatio), results[1].median <= kExecRatio * base + 0.1);
  row("exec in a live session, command line", text("%.3f ms, %.2fx", results[2].median, results[2].median / base), "3x",
      results[2].median <= 3 * base);
  // Back to back: caches are warm, and no processor sleeps for long.
  const auto spawns = alternate(400, {spawnOnce});
  const auto execs = alternate(400, {[&] { return execOnce(session); }});
  const double spawn = spawns[0].median, exec = execs[0].median;
  row("fork+exec of true, one after the other", text("%.3f ms", spawn), "", true);
  row("exec in a live session, library, one after the other", text("%.3f ms, %.2fx", exec, exec / spawn),
      text("%.2fx + 0.1 ms", kExecRatio), exec <= kExecRatio * spawn + 0.1);
  if (!session.destroy()) fatal("destroy failed");
}

void measureCreate(const Setting& setting) {
  const Command floor{.argv = {setting.floor, "/usr/bin/true"}};
  std::vector<double> removals;
  const auto create = [&] {
    std::optional<caisson::Session> made;
    const double took = timed([&] { made = setting.create(); });
    removals.push_back(timed([&] { (void)made->destroy(); }));
    return took;
  };
  const auto results = alternate(100, {[&] { return timeOnce(floor).value_or(0); }, create});
  row("the floor of a launch, for comparison", text("%.2f ms", results[0].median), "", true);
  row("create, library", text("%.2f ms, %.2fx", results[1].median, results[1].median / results[0].median),
      "2x the floor", results[1].median <= 2 * results[0].median);
  row("destroy, for information", text("%.2f ms", median(removals)), "", true);
}

struct LayerTimes {
  caisson::Session session;
  std::vector<double> checkpoints, restores, forks;
};

/// Every operation with the whole tree in the layer that is frozen or dropped: in the first round, and with the tree in
/// a lower layer in the others.
void measureLayers(LayerTimes& times, unsigned round) {
  caisson::Session& session = times.session;
  if (!session.write("touched", std::to_string(round))) fatal("write failed");
  const std::string name = "p" + std::to_string(round);
  times.checkpoints.push_back(timed([&] {
    if (!session.checkpoint(name)) fatal("checkpoint failed");
  }));
  if (!session.write("touched", "again")) fatal("write failed");
  times.restores.push_back(timed([&] {
    if (!session.restore(name)) fatal("restore failed");
  }));
  if (!session.write("touched", "more")) fatal("write failed");
  std::optional<caisson::Session> other;
  times.forks.push_back(timed([&] {
    auto made = session.fork();
    if (!made) fatal("fork failed");
    other = *std::move(made);
  }));
  if (!other->destroy()) fatal("destroy failed");
}

/// The two trees take turns: each of these operations syncs its metadata, which waits for the disk's journal and so
/// affects both alike. Data from creating the trees is synced before.
void measureHistory(const Setting& setting) {
  LayerTimes small{setting.create(), {}, {}, {}}, large{setting.create(), {}, {}, {}};
  fill(small.session, 100);
  fill(large.session, setting.files);
  ::sync();
  for (unsigned round = 0; round < 14; ++round) {
    measureLayers(round % 2 == 0 ? small : large, round);
    measureLayers(round % 2 == 0 ? large : small, round);
  }
  std::printf("  the first checkpoint, of all 100 and all %u files, took %.2f and %.2f ms\n", setting.files,
              small.checkpoints.front(), large.checkpoints.front());
  const auto line = [&](const char* name, double few, double many) {
    row(std::string(name) + ", 100 and " + std::to_string(setting.files) + " files",
        text("%.2f and %.2f ms", few, many), "5 ms, within 20 %", many < 5 && few < 5 && many <= 1.2 * few);
  };
  line("checkpoint", median(small.checkpoints), median(large.checkpoints));
  line("restore", median(small.restores), median(large.restores));
  line("fork", median(small.forks), median(large.forks));
  for (caisson::Session* one : {&small.session, &large.session}) {
    if (!one->destroy()) fatal("destroy failed");
  }
}

void measurePool(const Setting& setting) {
  auto pool = setting.pool(32);
  std::vector<double> samples, firsts;
  for (int round = 0; round < 4; ++round) {
    while (pool.ready() < 32) ::usleep(10'000);
    for (int i = 0; i < 25; ++i) {
      std::optional<caisson::Session> taken;
      samples.push_back(timed([&] {
        auto one = pool.take();
        if (!one) fatal(one.error().message());
        taken = *std::move(one);
      }));
      firsts.push_back(execOnce(*taken));
      (void)taken->destroy();
    }
  }
  row("a session from the pool, library", text("%.3f ms", median(samples)), "under 1 ms", median(samples) < 1);
  row("its first exec, for information", text("%.3f ms", median(firsts)), "", true);
}

void measureMany(const Setting& setting) {
  std::vector<caisson::Session> sessions;
  sessions.push_back(setting.create());
  sessions.push_back(setting.create());  // pages that two supervisors share are not private
  row("private memory of an idle session's supervisor, launcher, pid 1",
      text("%.0f KiB", privateKib(setting, sessions.front())), "at most 1.5 MiB",
      privateKib(setting, sessions.front()) <= 1536);
  std::vector<double> alone, among;
  for (int i = 0; i < 300; ++i) alone.push_back(execOnce(sessions.front()));
  while (sessions.size() < 500) sessions.push_back(setting.create());
  for (int i = 0; i < 1000; ++i) among.push_back(execOnce(sessions[static_cast<std::size_t>(i * 37) % 500]));
  // The first exec of each opens a connection; the second measurement is of sessions in use.
  std::vector<double> again(among.begin() + 500, among.end());
  row("exec with 1 and with 500 live sessions", text("%.3f and %.3f ms", median(alone), median(again)), "2x",
      median(again) <= 2 * median(alone));
  row("the first exec of each of the 500, for information",
      text("%.3f ms", median({among.begin(), among.begin() + 500})), "", true);
  for (caisson::Session& one : sessions) (void)one.destroy();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  Setting setting;
  std::string only = "exec,create,pool,layers,many,files";
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--caisson")
      setting.caisson = argv[i + 1];
    else if (name == "--floor")
      setting.floor = argv[i + 1];
    else if (name == "--only")
      only = argv[i + 1];
    else if (name == "--files")
      setting.files = static_cast<unsigned>(std::atoi(argv[i + 1]));
    else
      fatal("unknown option " + name);
  }
  const auto scratch = Scratch::make();
  if (!scratch) fatal(scratch.error());
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;  // five hundred sessions are held by this one process
  ::setrlimit(RLIMIT_NOFILE, &files);
  setting.prepare(*scratch);
  std::printf("uid %d, other programs use %.0f %% of the processors\n\n", static_cast<int>(geteuid()),
              busyElsewhere() * 100);
  std::printf("| %-62s | %-24s | %-22s | |\n|---|---|---|---|\n", "what", "measured", "target");
  const auto wanted = [&](const char* part) { return only.find(part) != std::string::npos; };
  if (wanted("exec")) measureExec(setting);
  if (wanted("processor")) measureProcessorTime(setting);
  if (wanted("create")) measureCreate(setting);
  if (wanted("pool")) measurePool(setting);
  if (wanted("layers")) measureHistory(setting);
  if (wanted("many")) measureMany(setting);
  if (wanted("files")) {
    for (const FileWork& work : measureFileWork(setting)) {
      row(work.name, text("%.0f ms, %.2fx native", work.inside, work.inside / work.native), text("%.2fx", work.limit),
          work.inside <= work.limit * work.native);
    }
  }
  std::printf("\nother programs use %.0f %% of the processors\n", busyElsewhere() * 100);
  return 0;
}
