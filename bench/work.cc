#include "work.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

namespace bench {
namespace {

using Arguments = std::vector<std::string>;

struct Job {
  std::string name;
  std::string unit = "ms";
  std::string directory;  ///< host directory that is the workspace
  unsigned repetitions;   ///< in one batch
  Arguments program;      ///< "{out}" is replaced by a writable directory
  std::string absent;
};

/// Restores the affinity the driver had.
class CpuPair {
 public:
  CpuPair() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t few;
    CPU_ZERO(&few);
    for (int cpu = 0; cpu < CPU_SETSIZE && count_ < 2; ++cpu) {
      if (!CPU_ISSET(cpu, &before_)) continue;
      CPU_SET(cpu, &few);
      ++count_;
    }
    sched_setaffinity(0, sizeof few, &few);
  }
  CpuPair(const CpuPair&) = delete;
  CpuPair& operator=(const CpuPair&) = delete;
  ~CpuPair() { sched_setaffinity(0, sizeof before_, &before_); }
  [[nodiscard]] int count() const { return count_; }

 private:
  cpu_set_t before_{};
  int count_ = 0;
};

/// A translation unit that takes the optimiser some time.
std::string compileJob() {
  std::ostringstream source;
  source << "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";
  for (int i = 0; i < 60; ++i) {
    source << "int work" << i << "(const int* data, int count) {\n  int sum = " << i << ";\n"
           << "  for (int k = 0; k < count; ++k) {\n    if (data[k] % " << i % 7 + 2 << ") sum += data[k] * " << i
           << ";\n    else sum ^= data[k] >> " << i % 5 << ";\n  }\n  return sum;\n}\n";
  }
  return source.str();
}

bool copyTool(const Options& options, const char* name, const std::string& directory) {
  std::error_code error;
  return std::filesystem::copy_file(options.tools + "/" + name, directory + "/" + name, error);
}

int git(const Scratch& scratch, const std::string& directory, const Arguments& arguments) {
  Command command{{"/usr/bin/git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"},
                  directory,
                  cleanEnvironment(scratch)};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  return capture(command).status;
}

/// A repository of `count` files with the same content, so that creating it costs one object and as many inodes.
std::string makeTree(const Options& options, const Scratch& scratch, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!copyTool(options, "repeat", directory)) return "cannot copy " + options.tools + "/repeat";
  for (unsigned i = 0; i < options.files; ++i) {
    const std::string folder = directory + "/d" + std::to_string(i / 100);
    if (i % 100 == 0) std::filesystem::create_directory(folder, error);
    if (!writeFile(folder + "/f" + std::to_string(i), "the same text in every file\n")) return "cannot write " + folder;
  }
  // If the index is as new as its files, git reads every file again; wait a second, then refresh it.
  const bool made = git(scratch, directory, {"init", "-q"}) == 0 && git(scratch, directory, {"add", "-A"}) == 0 &&
                    git(scratch, directory, {"commit", "-q", "-m", "tree"}) == 0;
  sleep(2);
  if (!made || git(scratch, directory, {"update-index", "--really-refresh"}) != 0) return "git could not make the tree";
  return "";
}

std::vector<Job> makeJobs(const Options& options, const Scratch& scratch) {
  const std::string plain = scratch.path("work");
  const std::string tree = scratch.path("tree");
  std::error_code error;
  std::filesystem::create_directory(plain, error);
  const bool ready = copyTool(options, "repeat", plain) && copyTool(options, "syscall_loop", plain) &&
                     writeFile(plain + "/job.c", compileJob());
  const Arguments status{"/usr/bin/git", "--no-optional-locks", "status", "--porcelain"};
  const Arguments status_minimal{"/usr/bin/git",        "-c",     "core.checkStat=minimal",
                                 "--no-optional-locks", "status", "--porcelain"};
  const std::string files = std::to_string(options.files) + " files";
  std::vector<Job> jobs{
      {"compile (cc -O2)", "ms", plain, 3, {"/usr/bin/cc", "-O2", "-pipe", "-c", "job.c", "-o", "{out}/job.o"}, ""},
      {"python3 -c pass", "ms", plain, 10, {"/usr/bin/python3", "-c", "pass"}, ""},
      {"node -e 0", "ms", plain, 5, {"/usr/bin/node", "-e", "0"}, ""},
      {"git status, " + files, "ms", tree, 3, status, ""},
      {"git status, checkStat=minimal", "ms", tree, 3, status_minimal, ""},
      {"getppid", "ns", plain, 1, {"getppid", "1000000"}, ""},
      {"ioctl", "ns", plain, 1, {"ioctl", "1000000"}, ""},
  };
  const std::string no_tree = findProgram("git") ? makeTree(options, scratch, tree) : "";
  for (Job& job : jobs) {
    if (!ready)
      job.absent = "the helpers are not in " + options.tools;
    else if (job.unit == "ms" && !findProgram(job.program[0]))
      job.absent = job.program[0] + " is not installed";
    else if (job.directory == tree)
      job.absent = no_tree;
  }
  return jobs;
}

/// The job as argv; `here` is the workspace and `out` a writable directory as the program sees them.
Arguments helperCall(const Job& job, const std::string& here, const std::string& out) {
  Arguments argv;
  if (job.unit == "ns")
    argv = {here + "/syscall_loop"};
  else
    argv = {here + "/repeat", std::to_string(job.repetitions)};
  for (std::string argument : job.program) {
    if (const auto at = argument.find("{out}"); at != std::string::npos) argument.replace(at, 5, out);
    argv.push_back(argument);
  }
  return argv;
}

/// Runs one batch: appends the helper's figures to `sample`, or returns the error.
std::string runBatch(const Command& command, const std::string& unit, std::vector<double>& sample) {
  const Captured result = capture(command);
  if (result.status != 0)
    return "exit status " + std::to_string(result.status) + ": " + result.err.substr(0, result.err.find('\n'));
  std::istringstream lines(result.out);
  for (double value = 0; lines >> value;) sample.push_back(unit == "ms" ? value / 1e6 : value);
  return "";
}

Inside compare(const std::vector<double>& native, const std::vector<double>& inside) {
  Inside result;
  result.summary = summarize(inside);
  const double base = median(native);
  result.ratio = base > 0 ? result.summary.median / base : 0;
  result.difference = result.summary.median - base;
  return result;
}

struct Contestant {
  std::optional<Command> command;
  std::vector<double> sample;
};

WorkResult measureJob(const Job& job, const Options& options, const Scratch& scratch, int cpus) {
  WorkResult result{job.name, job.unit, job.absent, {}, {}, {}};
  if (!result.absent.empty()) return result;
  const auto environment = cleanEnvironment(scratch);
  Contestant native{Command{helperCall(job, job.directory, scratch.path("home")), job.directory, environment}, {}};

  Arguments floor_argv{options.tools + "/floor", "--without", "overlay"};
  const Arguments inside = helperCall(job, "/workspace", "/tmp");
  floor_argv.insert(floor_argv.end(), inside.begin(), inside.end());
  Contestant floor{Command{floor_argv, job.directory, environment}, {}};

  Arguments arguments{"--profile", "bash", "--workspace", job.directory + ":ro", "--cpus", std::to_string(cpus), "--"};
  arguments.insert(arguments.end(), inside.begin(), inside.end());
  Contestant caisson{caissonRun(options, scratch, arguments), {}};

  for (unsigned batch = 0; batch < options.batches + 1; ++batch) {
    for (Contestant* one : {&native, &floor, &caisson}) {
      if (batch == 1) one->sample.clear();  // the first batch filled the page cache
      if (!one->command || !result.absent.empty()) continue;
      result.absent = runBatch(*one->command, job.unit, one->sample);
      if (!result.absent.empty()) result.absent = one->command->argv[0] + ": " + result.absent;
    }
  }
  if (!result.absent.empty()) return result;
  result.native = summarize(native.sample);
  result.floor = compare(native.sample, floor.sample);
  if (caisson.command) result.caisson = compare(native.sample, caisson.sample);
  return result;
}

}  // namespace

std::vector<WorkResult> measureWork(const Options& options, const Scratch& scratch) {
  const CpuPair pair;
  std::vector<WorkResult> results;
  for (const Job& job : makeJobs(options, scratch)) results.push_back(measureJob(job, options, scratch, pair.count()));
  return results;
}

}  // namespace bench
