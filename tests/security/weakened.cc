// caisson-weakened WEAKNESS[,WEAKNESS]... [OPTION]... -- COMMAND [ARGUMENT]...
//
// `caisson run` with chosen protections taken away, so that every test of an attack can show that the attack works
// without them: a test that cannot fail proves nothing. It builds the very plan that caisson would carry out, changes
// the plan's data, and hands it to the same supervisor. Never for root: what gets through here gets through for real.
//
// Options: --workspace DIR[:MODE]  --ro PATH  --deny PATH  --level LEVEL  --tier TIER  --profile NAME  --policy FILE
//          --swap LINK   after planning and before launch the workspace is moved aside and LINK put in its place
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/syscall_names.h"
#include "caisson/policy.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "plan/syscalls.h"
#include "supervise/host.h"
#include "supervise/supervisor.h"

namespace caisson {
namespace {

using plan::Plan;

template <class StepType>
void removeSteps(
    Plan& plan, const std::function<bool(const StepType&)>& unwanted = [](const StepType&) { return true; }) {
  std::erase_if(plan.steps, [&](const plan::Step& step) {
    const auto* found = std::get_if<StepType>(&step);
    return found != nullptr && unwanted(*found);
  });
}

/// The host's own root instead of one of the sandbox's: everything the user can see is seen.
void useHostRoot(Plan& plan) {
  plan.own_root = false;
  plan.steps.clear();
  plan.landlock = {};
  plan.working_directory = "/";
  plan.namespaces.mount = false;
}

void letThrough(Plan& plan, const std::string& call) {
  const std::optional<int> number = syscallNumber(call);
  if (!plan.syscalls || !number) return;
  std::erase_if(plan.syscalls->rules, [&](const plan::SyscallRule& rule) { return rule.number == *number; });
  plan.syscalls->rules.push_back({*number, {}, plan::kAllow});
}

/// Compares all 64 bits of an ioctl request, of which the kernel reads 32 (CVE-2019-10063).
void compareWholeRequest(Plan& plan) {
  for (plan::SyscallRule& rule : plan.syscalls->rules) {
    if (rule.number != *syscallNumber("ioctl")) continue;
    for (plan::Branch& branch : rule.branches) {
      branch.tests.push_back({1, plan::ArgumentTest::Half::high, plan::ArgumentTest::Kind::equal, 0xffffffff, 0});
    }
  }
}

/// Every mount can hold programs, as if no executable list had been given.
void makeExecutable(Plan& plan) {
  for (plan::Step& step : plan.steps) {
    if (auto* bind = std::get_if<plan::Bind>(&step); bind != nullptr && !bind->devices) bind->executable = true;
    if (auto* tmpfs = std::get_if<plan::MountTmpfs>(&step)) tmpfs->executable = true;
    if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) overlay->executable = true;
  }
}

/// Puts the system's directory of programs back over the emptied one.
void showPrograms(Plan& plan) {
  const plan::Bind programs{.source = "/usr/bin", .target = "/usr/bin", .type = plan::SourceType::directory};
  plan.steps.insert(plan.steps.end() - 1, programs);
}

struct Weakness {
  const char* name;
  void (*apply)(Plan& plan);
};

constexpr Weakness kWeaknesses[] = {
    {"nothing", [](Plan&) {}},
    {"seccomp", [](Plan& plan) { plan.syscalls.reset(); }},
    {"architecture-check", [](Plan& plan) { plan.syscalls->check_architecture = false; }},
    {"request-mask", compareWholeRequest},
    {"landlock", [](Plan& plan) { plan.landlock = {}; }},
    {"landlock-scoping", [](Plan& plan) { plan.landlock.scoped = 0; }},
    {"capabilities", [](Plan& plan) { plan.drop_capabilities = false; }},
    {"no-new-privileges", [](Plan& plan) { plan.no_new_privileges = false; }},
    {"self-test", [](Plan& plan) { plan.self_test = false; }},
    {"hidden-init", [](Plan& plan) { plan.hardening.hide_init = false; }},
    {"closed-descriptors", [](Plan& plan) { plan.hardening.close_descriptors = false; }},
    {"new-session", [](Plan& plan) { plan.hardening.new_session = false; }},
    {"new-keyring", [](Plan& plan) { plan.hardening.new_keyring = false; }},
    {"hidden-processes", [](Plan& plan) { plan.hardening.hide_processes = false; }},
    {"guarded-links", [](Plan& plan) { plan.hardening.guard_links = false; }},
    {"masks", [](Plan& plan) { removeSteps<plan::MaskPath>(plan); }},
    {"read-only-proc",
     [](Plan& plan) { removeSteps<plan::Bind>(plan, [](const plan::Bind& bind) { return bind.inside; }); }},
    {"read-only-root", [](Plan& plan) { removeSteps<plan::ReadOnlyRoot>(plan); }},
    {"read-only-workspace",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* bind = std::get_if<plan::Bind>(&step); bind != nullptr && bind->target == "/workspace")
           bind->writable = true;
       }
     }},
    {"whiteouts",
     [](Plan& plan) {
       for (plan::Step& step : plan.steps) {
         if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) overlay->whiteouts.clear();
       }
     }},
    {"noexec", makeExecutable},
    {"programs", showPrograms},
    {"own-root", useHostRoot},
    {"pid-namespace", [](Plan& plan) { plan.namespaces.pid = false; }},
    {"network-namespace", [](Plan& plan) { plan.namespaces.network = plan.loopback = false; }},
    {"ipc-namespace", [](Plan& plan) { plan.namespaces.ipc = false; }},
    {"uts-namespace", [](Plan& plan) { plan.namespaces.uts = false; }},
    {"cgroup-namespace", [](Plan& plan) { plan.namespaces.cgroup = false; }},
    {"time-namespace", [](Plan& plan) { plan.namespaces.time = false; }},
    {"limits", [](Plan& plan) { plan.rlimits.clear(); }},
};

bool weaken(Plan& plan, const std::string& name) {
  if (name.starts_with("allow:")) {
    letThrough(plan, name.substr(6));
    return true;
  }
  if (name == "clean-environment") {
    for (char** entry = environ; *entry != nullptr; ++entry) plan.environment.emplace_back(*entry);
    return true;
  }
  for (const Weakness& weakness : kWeaknesses) {
    if (name != weakness.name) continue;
    weakness.apply(plan);
    return true;
  }
  return false;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct CommandLine {
  std::vector<std::string> weaknesses;
  std::string profile = "bash", file;
  std::vector<std::pair<std::string, std::string>> settings;  ///< policy keys
  std::string swap, workspace;
  std::vector<std::string> command;
};

std::optional<CommandLine> parse(int argc, char** argv) {
  CommandLine line;
  if (argc < 2) return std::nullopt;
  line.weaknesses = split(argv[1]);
  int at = 2;
  for (; at + 1 < argc && std::string_view(argv[at]) != "--"; at += 2) {
    const std::string option = argv[at];
    const std::string value = argv[at + 1];
    if (option == "--workspace") {
      const std::size_t colon = value.rfind(':');
      line.workspace = value.substr(0, colon);
      if (!line.workspace.empty()) line.settings.emplace_back("filesystem.workspace.path", line.workspace);
      if (colon != std::string::npos) line.settings.emplace_back("filesystem.workspace.mode", value.substr(colon + 1));
    } else if (option == "--ro") {
      line.settings.emplace_back("filesystem.read_only", value);
    } else if (option == "--deny") {
      line.settings.emplace_back("filesystem.denied", value);
    } else if (option == "--level") {
      line.settings.emplace_back("isolation.level", value);
    } else if (option == "--tier") {
      line.settings.emplace_back("isolation.tier", value);
    } else if (option == "--profile") {
      line.profile = value;
    } else if (option == "--policy") {
      line.file = value;
    } else if (option == "--swap") {
      line.swap = value;
    } else {
      return std::nullopt;
    }
  }
  for (++at; at < argc; ++at) line.command.emplace_back(argv[at]);
  if (line.command.empty()) return std::nullopt;
  return line;
}

int complain(const std::string& what) {
  std::cerr << "caisson-weakened: " << what << '\n';
  return 125;
}

int runWeakened(const CommandLine& line) {
  auto policy = line.file.empty() ? Policy::profile(line.profile) : Policy::load(line.file);
  if (!policy) return complain(policy.error().message());
  for (const auto& [key, value] : line.settings) {
    const bool list = key == "filesystem.read_only" || key == "filesystem.denied";
    const auto set = list ? policy->append(key, value) : policy->set(key, value);
    if (!set) return complain(set.error().message());
  }
  Request request{.policy = *policy, .command = line.command};
  request.out = request.err = StreamMode::relay;
  request.relay_stdin = true;
  request.interactive = isatty(STDIN_FILENO) == 1;
  request.forward_signals = true;
  auto plan =
      plan::build(policy->model(), supervise::observeHost(policy->model()), {line.command, request.interactive});
  if (!plan) return complain(plan.error().message());
  if (plan->builtin_syscalls) {
    // The same rules as data: the compiled form cannot be weakened one rule at a time.
    auto filter = plan::filterForFull(policy->model(), {});
    if (!filter) return complain(filter.error().message());
    plan->syscalls = std::move(*filter);
    plan->builtin_syscalls = false;
  }
  for (const std::string& name : line.weaknesses) {
    if (!weaken(*plan, name)) return complain("no weakness is called " + name);
  }
  if (!line.swap.empty()) {
    const std::string aside = line.workspace + ".aside";
    if (rename(line.workspace.c_str(), aside.c_str()) != 0 || symlink(line.swap.c_str(), line.workspace.c_str()) != 0) {
      return complain("can't swap " + line.workspace);
    }
  }
  const RunResult result = supervise::supervise(*plan, request);
  if (result.error) complain(result.error->message());
  return exitStatus(result);
}

}  // namespace
}  // namespace caisson

int main(int argc, char** argv) {
  if (geteuid() == 0) return caisson::complain("never for root: an attack that gets through would have root's rights");
  const auto line = caisson::parse(argc, argv);
  if (!line)
    return caisson::complain(
        "usage: caisson-weakened WEAKNESS[,WEAKNESS]... [OPTION VALUE]... -- COMMAND [ARGUMENT]...");
  return caisson::runWeakened(*line);
}
