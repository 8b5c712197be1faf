#include "session_rows.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "process.h"
#include "statistics.h"

namespace bench {
namespace {

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The number after a key such as "\"pid\":" or "RssAnon:".
long numberAfter(const std::string& text, const std::string& key) {
  const auto at = text.find(key);
  return at == std::string::npos ? -1 : std::atol(text.c_str() + at + key.size());
}

/// The duration that the script reports, or our measurement including its start.
enum class Clock { its_own, ours };

double runNative(const std::string& directory, const std::string& script, Clock clock = Clock::ours) {
  const double begin = nowMs();
  const auto done = capture({.argv = {"/bin/sh", "-c", script},
                             .directory = directory,
                             .environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"}});
  if (done.status != 0) fatal("native: " + script + ": " + done.err);
  return clock == Clock::its_own ? std::atof(done.out.c_str()) : nowMs() - begin;
}

double runInside(caisson::Session& session, const std::string& script, Clock clock = Clock::ours) {
  const double begin = nowMs();
  const auto done = session.exec({.command = {"/bin/sh", "-c", script}});
  if (!done || exitStatus(*done) != 0) {
    fatal("inside: " + script + ": " +
          (done ? done->err.data + (done->error ? done->error->message() : "") : done.error().message()));
  }
  return clock == Clock::its_own ? std::atof(done->out.data.c_str()) : nowMs() - begin;
}

constexpr const char* kMakeTree =
    "mkdir -p tree && cd tree && for d in $(seq 40); do mkdir d$d; for f in $(seq 50); do "
    "head -c 20000 /dev/urandom > d$d/f$f; done; done";
constexpr const char* kReadTree = "./read_tree 5";
constexpr const char* kReadWithPrograms = "for i in 1 2 3 4 5; do cat tree/d*/f* > /dev/null; done";
// A project of sixty sources, cloned and built.
constexpr const char* kMakeProject =
    "mkdir project && cd project && git -c init.defaultBranch=main init -q . && for i in $(seq 60); do "
    "printf '#include <stdio.h>\\n#include <stdlib.h>\\n#include <string.h>\\nint f%s(int x) { char b[64]; snprintf(b, "
    "sizeof b, \"%%d\", x); return atoi(b) + (int)strlen(b); }\\n' $i > f$i.c; "
    "done; echo 'int main(void) { return 0; }' > main.c; mkdir data; for i in $(seq 400); do echo $i > data/$i; done; "
    "git add -A && git -c user.name=b -c user.email=b@example.org commit -qm all";
constexpr const char* kCloneAndBuild =
    "rm -rf clone && git -c safe.directory='*' clone -q --no-hardlinks project clone && cd clone && "
    "for f in *.c; do cc -O1 -c $f -o ${f%.c}.o || exit 1; done && cc *.o -o program && ./program";

FileWork compare(const std::string& name, double limit, unsigned rounds, const std::string& directory,
                 caisson::Session& session, const std::string& script, Clock clock = Clock::ours) {
  std::vector<double> native, inside;
  for (unsigned round = 0; round <= rounds; ++round) {
    const double out = runNative(directory, script, clock);
    const double in = runInside(session, script, clock);
    if (round == 0) continue;
    native.push_back(out);
    inside.push_back(in);
  }
  return {name, median(native), median(inside), limit};
}

}  // namespace

void fatal(const std::string& why) {
  std::fprintf(stderr, "sessions: %s\n", why.c_str());
  std::exit(1);
}

void Setting::prepare(const Scratch& scratch) {
  home = scratch.path("home");
  workspace = scratch.workspace();
  ::mkdir(home.c_str(), 0700);
  ::setenv("CAISSON_HOME", home.c_str(), 1);
  for (std::string* path : {&caisson, &floor}) {
    if (char* absolute = ::realpath(path->c_str(), nullptr)) {
      *path = absolute;
      std::free(absolute);
    }
  }
}

namespace {

::caisson::SessionStore& theStore(const std::string& program) {
  static auto store = ::caisson::SessionStore::open(program);
  if (!store) fatal(store.error().message());
  return *store;
}

::caisson::SessionOptions optionsFor(const std::string& directory) {
  auto policy = ::caisson::Policy::profile("bash");
  if (!policy || !policy->set("filesystem.workspace.path", directory) ||
      !policy->set("filesystem.max_total_size", "4G") || !policy->set("filesystem.max_inodes", "1000000")) {
    fatal("the policy cannot be made");
  }
  return {.policy = *policy};
}

}  // namespace

caisson::Session Setting::create(const std::string& directory) const {
  auto made = theStore(caisson).create(optionsFor(directory));
  if (!made) fatal(made.error().message());
  return *std::move(made);
}

caisson::SessionPool Setting::pool(std::size_t size) const {
  auto made = theStore(caisson).pool(optionsFor(workspace), size);
  if (!made) fatal(made.error().message());
  return *std::move(made);
}

void fill(caisson::Session& session, unsigned files) {
  const std::string script = "mkdir t; cd t; i=0; while [ $i -lt " + std::to_string((files + 99) / 100) +
                             " ]; do mkdir $i; cd $i; for f in $(seq 100); do : > $f; done; cd ..; i=$((i+1)); done";
  const auto done = session.exec({.command = {"/bin/sh", "-c", script}, .timeout_seconds = 600});
  if (!done || exitStatus(*done) != 0) fatal("the tree could not be made");
}

namespace {

/// "init" or "supervisor".
long pidOf(const Setting& setting, const caisson::Session& session, const std::string& process) {
  const std::string record = contentOf(setting.home + "/sessions/" + session.id() + "/init.json");
  const std::size_t at = record.find("\"" + process + "\"");
  return at == std::string::npos ? -1 : numberAfter(record.substr(at), "\"pid\":");
}

}  // namespace

double supervisionCpuMs(const Setting& setting, const caisson::Session& session) {
  double nanoseconds = 0;
  for (const char* process : {"init", "supervisor"}) {
    const std::string tasks = "/proc/" + std::to_string(pidOf(setting, session, process)) + "/task";
    std::error_code error;
    for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
      nanoseconds += std::atof(contentOf(task.path() / "schedstat").c_str());
    }
    if (error) fatal("the processor time of the session's processes cannot be read");
  }
  return nanoseconds / 1e6;
}

double privateKib(const Setting& setting, const caisson::Session& session) {
  const long supervisor = pidOf(setting, session, "supervisor");
  const long launcher = numberAfter(contentOf("/proc/" + std::to_string(supervisor) + "/status"), "PPid:");
  long kib = 0;
  for (const long pid : {pidOf(setting, session, "init"), supervisor, launcher}) {
    const std::string directory = "/proc/" + std::to_string(pid);
    const std::string rollup = contentOf(directory + "/smaps_rollup"), status = contentOf(directory + "/status");
    const long clean = numberAfter(rollup, "Private_Clean:"), dirty = numberAfter(rollup, "Private_Dirty:");
    // They are not dumpable, so only root may read the first file.
    const long anonymous = numberAfter(status, "RssAnon:") + numberAfter(status, "RssShmem:");
    if (pid < 2 || anonymous < 0) fatal("the memory of the session's processes cannot be read");
    kib += (dirty < 0 ? anonymous : clean + dirty) + numberAfter(status, "VmPTE:");
  }
  return static_cast<double>(kib);
}

std::vector<FileWork> measureFileWork(const Setting& setting) {
  const std::string directory = setting.workspace + "-files";
  ::mkdir(directory.c_str(), 0755);
  const std::string reader = setting.floor.substr(0, setting.floor.rfind('/') + 1) + "read_tree";
  runNative(directory, "cp " + reader + " read_tree && chmod 755 read_tree");
  runNative(directory, kMakeTree);
  runNative(directory, kMakeProject);
  caisson::Session session = setting.create(directory);
  std::vector<FileWork> results;
  results.push_back(compare("reading 2000 files of 20 kB five times, from below", 1.10, 19, directory, session,
                            kReadTree, Clock::its_own));
  results.push_back(
      compare("the same with five starts of cat, for information", 2, 9, directory, session, kReadWithPrograms));
  runInside(session, "cp -r tree copy && rm -r tree && mv copy tree");
  results.push_back(
      compare("reading, of files written in the session", 1.10, 19, directory, session, kReadTree, Clock::its_own));
  results.push_back(compare("git clone and build of 61 sources", 1.25, 5, directory, session, kCloneAndBuild));
  if (!session.destroy()) fatal("destroy failed");
  return results;
}

}  // namespace bench
