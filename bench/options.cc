#include "options.h"

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "peers.h"

namespace bench {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

bool toNumber(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 && value > 0 && value < 1e9;
}

bool chooseSections(const std::string& list, Options& options) {
  options.launch = options.throughput = options.memory = options.audit = options.work = options.growth = false;
  for (const std::string& name : split(list, ',')) {
    if (name == "launch")
      options.launch = true;
    else if (name == "throughput")
      options.throughput = true;
    else if (name == "memory")
      options.memory = true;
    else if (name == "audit")
      options.audit = true;
    else if (name == "work")
      options.work = true;
    else if (name == "growth")
      options.growth = true;
    else if (name == "parts")
      options.parts = options.launch = true;
    else
      return false;
  }
  return true;
}

bool choosePeers(const std::string& list, Options& options) {
  options.peers.clear();
  if (list == "none") return true;
  for (const std::string& entry : split(list, ',')) {
    const auto equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    if (!isPeer(name)) return false;
    options.peers[name] = equals == std::string::npos ? name : entry.substr(equals + 1);
  }
  return true;
}

/// Returns false if the option is unknown or its value invalid.
bool apply(const std::string& name, const std::string& value, Options& options) {
  double number = 0;
  if (name == "--caisson")
    options.caisson = value;
  else if (name == "--without-cgroup")
    options.without_cgroup = split(value, ' ');
  else if (name == "--tools")
    options.tools = value;
  else if (name == "--json")
    options.json = value;
  else if (name == "--only")
    return chooseSections(value, options);
  else if (name == "--peers")
    return choosePeers(value, options);
  else if (!toNumber(value, number))
    return false;
  else if (name == "--launches")
    options.launches = static_cast<unsigned>(number);
  else if (name == "--budget")
    options.budget_seconds = number;
  else if (name == "--stretch")
    options.throughput_seconds = number;
  else if (name == "--files")
    options.files = static_cast<unsigned>(number);
  else if (name == "--batches")
    options.batches = static_cast<unsigned>(number);
  else
    return false;
  return true;
}

}  // namespace

const char* usage() {
  return "usage: bench [--caisson PATH] [--only launch,throughput,memory,audit,work,growth,parts] [--json FILE]\n"
         "             [--launches N] [--budget SECONDS] [--stretch SECONDS] [--batches N] [--files N]\n"
         "             [--without-cgroup 'ARGS of caisson run'] [--peers none|crun,firejail,nsjail,podman,runc[=PATH]] "
         "[--tools DIR]\n";
}

std::expected<Options, std::string> parseOptions(int argc, char** argv) {
  Options options;
  for (const std::string_view peer : usualPeers()) options.peers.emplace(peer, peer);
  std::error_code error;
  options.tools = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc || !apply(name, argv[i + 1], options)) {
      return std::unexpected("cannot use `" + name + (i + 1 < argc ? std::string(" ") + argv[i + 1] : "") + "`");
    }
  }
  return options;
}

}  // namespace bench
