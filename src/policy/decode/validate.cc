#include "policy/decode/validate.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/never_allowed_calls.h"
#include "base/text.h"
#include "policy/decode/syntax.h"
#include "policy/rules/credential.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

constexpr std::uint64_t kLeastMemory = 4 * kMiB;
constexpr std::uint64_t kLeastOpenFiles = 8;
constexpr std::uint64_t kLeastStack = 64 * kKiB;
constexpr std::uint64_t kMaxCpus = 4096;
constexpr std::size_t kMaxTmpfs = 64;

/// Trees that a tmpfs must not cover: the sandbox builds them, and a writable copy would let the payload replace files
/// that the loader, libc or the self-test trusts.
constexpr std::string_view kReservedTops[] = {"/proc",  "/dev",   "/sys",    "/usr", "/bin",  "/sbin", "/lib",
                                              "/lib32", "/lib64", "/libx32", "/etc", "/boot", "/root"};

Problem unexpected(std::string key, std::string expected, std::string got, std::string hint = {}) {
  return {std::move(key), "expected " + std::move(expected) + ", got " + std::move(got), std::move(hint)};
}

std::string at(std::string_view key, std::size_t index) { return std::string(key) + "[" + std::to_string(index) + "]"; }

std::optional<Problem> checkText(Syntax syntax, std::string key, std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    return unexpected(std::move(key), "a text", "one with a NUL character");
  if (auto flaw = findFlaw(syntax, text)) return unexpected(std::move(key), flaw->expected, inQuotes(text), flaw->hint);
  return std::nullopt;
}

std::optional<Problem> checkQuantity(const Field& field, std::uint64_t value) {
  std::uint64_t least = 0;
  if (field.syntax == Syntax::positive) least = 1;
  if (field.syntax == Syntax::memory) least = kLeastMemory;
  if (field.syntax == Syntax::open_files) least = kLeastOpenFiles;
  if (field.syntax == Syntax::stack) least = kLeastStack;
  if (field.syntax == Syntax::memory && isShare(value)) return std::nullopt;
  if (value >= least && value <= kMaxQuantity) return std::nullopt;
  const bool low = value < least;
  return unexpected(std::string(field.key),
                    low ? "at least " + display(field, least) : "at most " + display(field, kMaxQuantity),
                    display(field, value));
}

std::optional<Problem> checkNumber(const Field& field, double value) {
  const bool above_zero =
      field.syntax == Syntax::positive || field.syntax == Syntax::time_limit || field.syntax == Syntax::cpu_count;
  constexpr double kMaxNumber = kAllCpus;
  const bool possible = std::isfinite(value) && (above_zero ? value > 0 : value >= 0) &&
                        (field.kind != Kind::number || value <= kMaxNumber);
  if (possible || (field.syntax == Syntax::time_limit && value == kNoTimeLimit)) return std::nullopt;
  const std::string most = field.kind == Kind::number ? ", at most 1000000" : "";
  return unexpected(std::string(field.key), (above_zero ? "a number above 0" : "a number") + most, formatNumber(value));
}

std::optional<Problem> checkCache(const Tmpfs& mount, const std::string& key) {
  if (mount.cache.empty()) return std::nullopt;
  const bool name = mount.cache.size() <= 32 && std::ranges::all_of(mount.cache, [](char letter) {
                      return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
                    });
  if (!name) {
    return unexpected(key + ".cache", "workspace, or a name of 1 to 32 letters a-z, digits and -",
                      inQuotes(mount.cache));
  }
  if (mount.store == DirectoryStore::memory) {
    return Problem{key + ".cache", "a directory in memory cannot outlive the sandbox", "set store = \"prefer_disk\""};
  }
  return std::nullopt;
}

std::optional<Problem> checkTmpfs(const Field& field, const std::vector<Tmpfs>& mounts) {
  if (mounts.size() > kMaxTmpfs) {
    return unexpected(std::string(field.key), "at most 64 directories", std::to_string(mounts.size()));
  }
  std::set<std::string> seen;
  for (std::size_t index = 0; index < mounts.size(); ++index) {
    const Tmpfs& mount = mounts[index];
    const std::string key = at(field.key, index);
    if (auto problem = checkText(Syntax::inside_path, key + ".path", mount.path)) return problem;
    const std::string path = normalPath(mount.path);
    for (const std::string_view top : kReservedTops) {
      if (isWithin(path, top) || path == "/") {
        return unexpected(key + ".path", "a directory that the sandbox does not build itself", inQuotes(mount.path),
                          "use a directory such as /tmp, /home/sandbox or /scratch");
      }
    }
    if (!seen.insert(path).second) {
      return Problem{key + ".path", inQuotes(mount.path) + " is given twice", "keep one of the two"};
    }
    // To the kernel's tmpfs 0 means "no limit".
    if (mount.size == 0 || mount.size > kMaxQuantity) {
      return unexpected(key + ".size", "a size above 0", std::to_string(mount.size));
    }
    if (mount.inodes == 0 || mount.inodes > kMaxQuantity) {
      return unexpected(key + ".inodes", "a count above 0", std::to_string(mount.inodes));
    }
    if (auto problem = checkCache(mount, key)) return problem;
    if (mount.access == TmpfsAccess::rw) continue;
    if (mount.store != DirectoryStore::memory) {
      return Problem{key + ".store",
                     "a directory that is " + std::string(name(mount.access)) + " can only be kept in memory",
                     "leave one of the two out"};
    }
    if (mount.exec)
      return Problem{key + ".exec",
                     "nothing new can be executed in a directory that is " + std::string(name(mount.access)),
                     "leave one of the two out"};
    // Landlock grants from the top down: siblings in the same tree could not be read either.
    if (mount.access == TmpfsAccess::wo && path.find('/', 1) != std::string::npos) {
      return unexpected(key + ".path", "a directory at the top for access wo", inQuotes(mount.path), "such as /logs");
    }
  }
  return std::nullopt;
}

std::optional<Problem> checkCpus(const Field& field, const std::vector<std::uint64_t>& cpus) {
  std::set<std::uint64_t> seen;
  for (std::size_t index = 0; index < cpus.size(); ++index) {
    if (cpus[index] >= kMaxCpus) {
      return unexpected(at(field.key, index), "the number of a CPU, below 4096", std::to_string(cpus[index]));
    }
    if (!seen.insert(cpus[index]).second) {
      return Problem{at(field.key, index), "CPU " + std::to_string(cpus[index]) + " is given twice", {}};
    }
  }
  return std::nullopt;
}

struct Checker {
  const Field& field;

  std::optional<Problem> operator()(std::monostate) const { return std::nullopt; }
  std::optional<Problem> operator()(bool) const { return std::nullopt; }
  std::optional<Problem> operator()(std::uint64_t value) const { return checkQuantity(field, value); }
  std::optional<Problem> operator()(double value) const { return checkNumber(field, value); }
  std::optional<Problem> operator()(const std::string& value) const {
    return checkText(field.syntax, std::string(field.key), value);
  }
  std::optional<Problem> operator()(const std::vector<std::string>& value) const {
    for (std::size_t index = 0; index < value.size(); ++index) {
      if (auto problem = checkText(field.syntax, at(field.key, index), value[index])) return problem;
    }
    return std::nullopt;
  }
  std::optional<Problem> operator()(const std::vector<std::uint64_t>& value) const { return checkCpus(field, value); }
  std::optional<Problem> operator()(const std::map<std::string, std::string>& value) const {
    for (const auto& [name, text] : value) {
      if (auto problem = checkText(field.syntax, std::string(field.key) + "." + name, name)) return problem;
      if (auto problem = checkText(Syntax::any, std::string(field.key) + "." + name, text)) return problem;
    }
    return std::nullopt;
  }
  std::optional<Problem> operator()(const std::vector<Credential>&) const {
    return std::nullopt;
  }  // checked as a whole below
  std::optional<Problem> operator()(const std::vector<Tmpfs>& value) const { return checkTmpfs(field, value); }
};

double ceilingOf(Ceiling ceiling, const Ceilings& ceilings) {
  switch (ceiling) {
    case Ceiling::none: return HUGE_VAL;
    case Ceiling::cpus: return ceilings.cpus;
    case Ceiling::memory: return static_cast<double>(ceilings.memory);
    case Ceiling::swap: return static_cast<double>(ceilings.swap);
    case Ceiling::processes: return static_cast<double>(ceilings.processes);
    case Ceiling::open_files: return static_cast<double>(ceilings.open_files);
    case Ceiling::wall: return ceilings.wall_seconds;
    case Ceiling::output: return static_cast<double>(ceilings.output);
  }
  return HUGE_VAL;
}

/// The key below [ceilings] of the owner's configuration.
std::string ceilingKey(Ceiling ceiling) {
  switch (ceiling) {
    case Ceiling::none: break;
    case Ceiling::cpus: return "cpus";
    case Ceiling::memory: return "memory";
    case Ceiling::swap: return "swap";
    case Ceiling::processes: return "processes";
    case Ceiling::open_files: return "open_files";
    case Ceiling::wall: return "wall_seconds";
    case Ceiling::output: return "output";
  }
  return "";
}

std::optional<Problem> checkCeiling(const Field& field, const Value& value, const Ceilings& ceilings) {
  if (field.ceiling == Ceiling::none) return std::nullopt;
  double ceiling = ceilingOf(field.ceiling, ceilings);
  double asked = 0;
  Value shown_ceiling = ceiling;
  if (const auto* number = std::get_if<double>(&value)) asked = *number;
  if (const auto* count = std::get_if<std::uint64_t>(&value)) {
    std::uint64_t most = field.ceiling == Ceiling::memory ? ceilings.memory : static_cast<std::uint64_t>(ceiling);
    std::uint64_t size = *count;
    shown_ceiling = most;
    if (field.ceiling == Ceiling::memory && isShare(size) != isShare(most)) {
      size = resolveShare(size, ceilings.host_memory);
      most = resolveShare(most, ceilings.host_memory);
      if (isShare(size) || isShare(most)) return std::nullopt;  // without the host's memory they cannot be compared
    }
    if (field.ceiling == Ceiling::memory && isShare(size)) {
      size = percentOf(size);
      most = percentOf(most);
    }
    asked = static_cast<double>(size);
    ceiling = static_cast<double>(most);
  }
  if (asked <= ceiling) return std::nullopt;
  return Problem{std::string(field.key),
                 display(field, value) + " is above the ceiling of " + display(field, shown_ceiling),
                 "ask for less, type it as a flag of `caisson run`, or raise `" + ceilingKey(field.ceiling) +
                     "` below [ceilings] in ~/.config/caisson/config.toml or /etc/caisson/config.toml"};
}

using Texts = std::vector<std::string>;

/// Returns the index of the first element of `names` that is also in `others`, compared by `form`.
template <class Form>
std::optional<std::size_t> firstShared(const Texts& names, const Texts& others, Form form) {
  std::set<std::string> forms;
  for (const std::string& other : others) forms.insert(form(other));
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (forms.contains(form(names[index]))) return index;
  }
  return std::nullopt;
}

std::string same(std::string_view text) { return std::string(text); }

std::optional<Problem> checkFilesystem(const Filesystem& filesystem) {
  if (filesystem.workspace.mode == WorkspaceMode::none && !filesystem.workspace.path.empty()) {
    return Problem{"filesystem.workspace.path", "a directory is named although filesystem.workspace.mode is \"none\"",
                   "choose the mode ro, rw or overlay, or leave the path out"};
  }
  if (auto index = firstShared(filesystem.read_only, filesystem.read_write, normalPath)) {
    return Problem{at("filesystem.read_only", *index),
                   inQuotes(filesystem.read_only[*index]) + " is also in filesystem.read_write",
                   "keep it in one of the two"};
  }
  for (std::size_t index = 0; index < filesystem.tmpfs.size(); ++index) {
    const std::string path = normalPath(filesystem.tmpfs[index].path);
    const Texts own{path};
    if (firstShared(own, filesystem.read_only, normalPath) || firstShared(own, filesystem.read_write, normalPath)) {
      return Problem{at("filesystem.tmpfs", index) + ".path", inQuotes(path) + " is also shown from the host",
                     "keep the tmpfs or the host's directory"};
    }
    if (filesystem.workspace.mode != WorkspaceMode::none && isWithin(path, "/workspace")) {
      return Problem{at("filesystem.tmpfs", index) + ".path", inQuotes(path) + " covers the workspace",
                     "set filesystem.workspace.mode to \"none\" or use another directory"};
    }
  }
  return std::nullopt;
}

/// Checks that each executable directory is one that the policy mounts: only a separate mount can be made executable
/// separately.
std::optional<Problem> checkExecutableDirectories(const Policy& policy) {
  const Texts& directories = policy.process.executable_directories;
  for (std::size_t index = 0; index < directories.size(); ++index) {
    const std::string key = at("process.executable_directories", index);
    if (!policy.process.allowed_executables && policy.process.blocked_executables.empty()) {
      return Problem{key, "this has a meaning only beside process.allowed_executables or blocked_executables",
                     "without lists, filesystem.tmpfs and filesystem.workspace_exec say what is executable"};
    }
    const std::string path = normalPath(directories[index]);
    const Texts own{path};
    const bool temporary = std::ranges::any_of(policy.filesystem.tmpfs,
                                               [&](const Tmpfs& tmpfs) { return normalPath(tmpfs.path) == path; });
    if (!temporary && path != "/workspace" && !firstShared(own, policy.filesystem.read_write, normalPath) &&
        !firstShared(own, policy.filesystem.read_only, normalPath)) {
      return Problem{key, inQuotes(path) + " is not a directory that the policy mounts",
                     "name /workspace, one of filesystem.tmpfs, read_only or read_write"};
    }
  }
  return std::nullopt;
}

std::optional<Problem> checkLists(const Policy& policy) {
  if (auto problem = checkExecutableDirectories(policy)) return problem;
  if (const auto& allowed = policy.process.allowed_executables) {
    if (auto index = firstShared(*allowed, policy.process.blocked_executables, same)) {
      return Problem{at("process.allowed_executables", *index),
                     inQuotes((*allowed)[*index]) + " is also in process.blocked_executables",
                     "keep it in one of the two"};
    }
  }
  const Network& network = policy.network;
  if (auto index = firstShared(network.allowed_hosts, network.denied_hosts, same)) {
    return Problem{at("network.allowed_hosts", *index),
                   inQuotes(network.allowed_hosts[*index]) + " is also in network.denied_hosts",
                   "keep it in one of the two"};
  }
  // With the host's network nothing filters hosts, so host lists would have no effect.
  if (network.mode == NetworkMode::host && (!network.allowed_hosts.empty() || !network.denied_hosts.empty())) {
    return Problem{"network.mode", "\"host\" cannot keep to network.allowed_hosts or network.denied_hosts",
                   "use the mode \"proxy\", or empty the lists"};
  }
  return std::nullopt;
}

std::optional<Problem> checkSyscalls(const Syscalls& syscalls) {
  if (syscalls.mode == SyscallMode::denylist && !syscalls.names) {
    return Problem{"syscalls.mode", "\"denylist\" needs syscalls.names: the calls to take away",
                   "name them, or use the mode \"allowlist\""};
  }
  if (!syscalls.names) return std::nullopt;
  if (syscalls.mode == SyscallMode::denylist) {
    if (auto index = firstShared(syscalls.allow, *syscalls.names, same)) {
      return Problem{at("syscalls.allow", *index),
                     inQuotes(syscalls.allow[*index]) + " is also taken away by syscalls.names",
                     "keep it in one of the two"};
    }
    return std::nullopt;
  }
  for (std::size_t index = 0; index < syscalls.names->size(); ++index) {
    if (!isNeverAllowed((*syscalls.names)[index])) continue;
    return unexpected(at("syscalls.names", index), "a call that can be allowed", inQuotes((*syscalls.names)[index]),
                      "this call is blocked whatever a policy says");
  }
  return std::nullopt;
}

std::optional<Problem> checkResources(const Policy& policy, const Ceilings& ceilings) {
  const Resources& resources = policy.resources;
  const double tasks =
      static_cast<double>(policy.process.max_processes) + static_cast<double>(resources.threads.value_or(0));
  if (resources.threads && tasks > static_cast<double>(ceilings.processes)) {
    return Problem{"resources.threads",
                   "with process.max_processes more than the ceiling of " + std::to_string(ceilings.processes),
                   "lower one of the two"};
  }
  if (resources.memory_reservation > resources.memory) {
    return Problem{"resources.memory_reservation", "more is reserved than resources.memory allows", "reserve less"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Problem> checkValue(const Field& field, const Value& value) { return std::visit(Checker{field}, value); }

std::optional<Problem> checkField(const Field& field, const Value& value, const Policy& policy,
                                  const Ceilings& ceilings) {
  if (auto problem = checkValue(field, value)) return problem;
  if (std::ranges::find(policy.typed, field.key) != policy.typed.end()) return std::nullopt;
  return checkCeiling(field, value, ceilings);
}

std::string valuesAboveCeilings(const Policy& policy, const Ceilings& ceilings) {
  std::string found;
  for (const Field& field : fields()) {
    const Value value = field.get(policy);
    if (!checkCeiling(field, value, ceilings)) continue;
    found += (found.empty() ? "" : ", ") + std::string(field.key) + " = " + display(field, value);
  }
  return found;
}

std::vector<Problem> findProblems(const Policy& policy, const Ceilings& ceilings) {
  std::vector<Problem> problems;
  const auto add = [&](std::optional<Problem> problem) {
    if (problem) problems.push_back(*std::move(problem));
  };
  for (const Field& field : fields()) add(checkField(field, field.get(policy), policy, ceilings));
  if (!problems.empty()) return problems;  // the checks below rely on values that are valid by themselves
  add(checkFilesystem(policy.filesystem));
  add(checkLists(policy));
  add(checkSyscalls(policy.syscalls));
  add(findCredentialProblem(policy));
  add(checkResources(policy, ceilings));
  return problems;
}

Result<void> validate(const Policy& policy) { return validate(policy, ceilingsOf(policy)); }

Error errorOf(const Problem& problem) {
  return plainError(Stage::policy, "validate", problem.key, problem.reason, problem.hint);
}

Result<void> validate(const Policy& policy, const Ceilings& ceilings) {
  std::vector<Error> errors;
  for (const Problem& problem : findProblems(policy, ceilings)) errors.push_back(errorOf(problem));
  if (errors.empty()) return {};
  return fail(together(std::move(errors)));
}

}  // namespace caisson::policy
