// Measures caisson against the kernel's floor and other sandboxes, in one run. See README.md in this folder.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "report.h"

namespace bench {
namespace {

std::string describeHost() {
  utsname kernel{};
  uname(&kernel);
  return std::string("Linux ") + kernel.release + " " + kernel.machine + ", " +
         std::to_string(std::thread::hardware_concurrency()) + " processors, uid " + std::to_string(geteuid()) +
         (geteuid() == 0 ? " (root: not the case that the targets are about)" : " (ordinary user)");
}

/// The object after `"key":` in a JSON text, with matched braces outside strings; empty if there is none.
std::string objectAfter(const std::string& json, const std::string& key) {
  const auto at = json.find("\"" + key + "\"");
  const auto begin = at == std::string::npos ? at : json.find('{', at);
  if (begin == std::string::npos) return "";
  int depth = 0;
  bool in_string = false;
  for (auto i = begin; i < json.size(); ++i) {
    if (in_string && json[i] == '\\') {
      ++i;
      continue;
    }
    if (json[i] == '"') in_string = !in_string;
    if (in_string) continue;
    if (json[i] == '{') ++depth;
    if (json[i] == '}' && --depth == 0) return json.substr(begin, i - begin + 1);
  }
  return "";
}

std::string layersInForce(const Options& options, const Scratch& scratch) {
  const auto command = caissonRun(options, scratch, {"--profile", "bash", "--json", "--", "true"});
  return command ? objectAfter(capture(*command).out, "layers") : "";
}

int run(const Options& options) {
  const auto scratch = Scratch::make();
  if (!scratch) {
    std::fprintf(stderr, "bench: %s\n", scratch.error().c_str());
    return 1;
  }
  Results results;
  results.host = describeHost();
  std::printf("%s\n", results.host.c_str());
  std::fflush(stdout);
  results.rows = makeRows(options, *scratch);
  results.layers = layersInForce(options, *scratch);
  const auto section = [&](auto print) {
    print(results);
    std::fflush(stdout);
    results.busy_elsewhere = std::max(results.busy_elsewhere, busyElsewhere());
  };
  section([](const Results&) {});
  if (options.launch) results.launches = measureLaunches(results.rows, options);
  section(printLaunches);
  if (options.throughput) results.throughput = measureThroughput(results.rows, options);
  section(printThroughput);
  if (options.memory) results.memory = measureMemory(options, *scratch);
  section(printMemory);
  if (options.audit) results.audit = measureAudit(options, *scratch);
  section(printAudit);
  if (options.work) results.work = measureWork(options, *scratch);
  section(printWork);
  if (options.growth) results.growth = measureGrowth(options, *scratch);
  section(printGrowth);
  endRows(results.rows);
  printNoise(results);
  printTargets(results);
  if (options.json.empty() || writeFile(options.json, toJson(results))) return 0;
  std::fprintf(stderr, "bench: cannot write %s\n", options.json.c_str());
  return 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  const auto options = bench::parseOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr, "bench: %s\n%s", options.error().c_str(), bench::usage());
    return 2;
  }
  return bench::run(*options);
}
