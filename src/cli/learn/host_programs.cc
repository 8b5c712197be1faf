#include "cli/learn/host_programs.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "host/workspace_scan.h"
#include "plan/workspace.h"
#include "policy/rules/name_pattern.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxListed = 50'000;

/// Programs, their configuration, and files of the kernel. Only root may write there.
constexpr std::string_view kSystemTrees[] = {"/etc",  "/usr", "/bin",  "/sbin", "/lib", "/lib32",  "/lib64",
                                             "/boot", "/dev", "/proc", "/sys",  "/run", "/var/run"};
/// Programs are started from files there.
constexpr std::string_view kSchedules[] = {"/var/spool/cron", "/var/spool/at", "/var/spool/atjobs",
                                           "/var/spool/atspool", "/var/lib/systemd"};
/// Hidden names of a home that hold data; the others configure programs.
constexpr std::string_view kHomeData[] = {".cache", ".local/share", ".local/state"};

template <class Range>
bool isBelowOne(std::string_view path, const Range& directories) {
  return std::ranges::any_of(directories, [&](std::string_view one) { return plan::below(path, one); });
}

/// The name behind links, as far as it exists.
std::string resolvedName(const std::string& path) {
  std::error_code problem;
  const fs::path real = fs::weakly_canonical(path, problem);
  return problem ? path : real.string();
}

/// A program below the directory; empty if there is none. Nothing if there is more than the budget allows to check.
std::optional<std::string> findProgram(const std::string& directory) {
  std::error_code problem;
  std::size_t count = 0;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(directory, options, problem);
       !problem && at != fs::recursive_directory_iterator(); at.increment(problem)) {
    if (++count > kMaxListed) return std::nullopt;
    std::error_code unknown;
    const fs::file_status status = at->symlink_status(unknown);
    const auto any_execute = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
    if (status.type() == fs::file_type::regular && (status.permissions() & any_execute) != fs::perms::none)
      return at->path().string();
  }
  return "";
}

}  // namespace

HostPrograms::HostPrograms() {
  const auto add = [](std::vector<std::string>& list, const std::string& path) {
    if (path.size() < 2 || path[0] != '/') return;
    list.push_back(path);
    list.push_back(resolvedName(path));
  };
  const char* home = std::getenv("HOME");
  add(homes_, home == nullptr ? "" : home);
  add(homes_, sys::homeFromPasswd(::getuid()));
  const char* path = std::getenv("PATH");
  for (const std::string_view one : policy::splitParts(path == nullptr ? "" : path, ':'))
    add(program_directories_, std::string(one));
}

std::optional<std::string> HostPrograms::whyNotName(const std::string& path) const {
  if (isBelowOne(path, kSystemTrees)) return "it belongs to the system";
  if (isBelowOne(path, kSchedules)) return "the system starts programs that it names";
  if (isBelowOne(path, program_directories_)) return "it is in a directory of PATH";
  if (const auto found = protected_.match(path.substr(1))) return std::string(policy::reason(found->category));
  for (const std::string& home : homes_) {
    if (!plan::below(path, home) || path.size() <= home.size() + 1 || path[home.size() + 1] != '.') continue;
    const std::string_view rest = std::string_view(path).substr(home.size() + 1);
    if (!isBelowOne(rest, kHomeData)) return "hidden files of a home configure programs";
  }
  return std::nullopt;
}

std::optional<std::string> HostPrograms::whyNotFile(const std::string& path) const {
  if (auto reason = whyNotName(path)) return reason;
  return whyNotName(resolvedName(path));
}

std::optional<std::string> HostPrograms::whyNotTree(const std::string& directory) const {
  const auto above = [&](const std::string& one) { return plan::below(one, directory); };
  if (std::ranges::any_of(homes_, above)) return "a home has files that shells and programs execute";
  if (std::ranges::any_of(program_directories_, above)) return "a directory of PATH is below it";
  const std::string last = directory.substr(directory.rfind('/') + 1);
  if (last == "bin" || last == "sbin") return "it holds programs";
  if (protected_.mayHold(directory.substr(1))) return "programs read their configuration below it";
  plan::WorkspaceScan scan;
  auto root = sys::RootDir::open(directory);
  if (root) {
    const host::ScanOptions options{.secrets = false, .protected_files = &protected_, .max_entries = kMaxListed};
    scan = host::scanWorkspace(*std::move(root), directory, options);
  } else if (root.error().sys_errno != ENOENT) {  // else it will be made
    return "it cannot be searched";
  }
  if (!scan.protected_paths.empty())
    return "it holds " + scan.protected_paths.front().path + ", which the host executes";
  const auto program = findProgram(directory);
  if (!program || scan.unscanned_count > 0 || !scan.covered.empty())
    return "it holds too much to look for programs in it";
  if (!program->empty()) return "it holds a program, " + *program;
  return std::nullopt;
}

std::optional<std::string> HostPrograms::whyNotDirectory(const std::string& directory) const {
  if (auto reason = whyNotFile(directory)) return reason;
  if (auto reason = whyNotTree(directory)) return reason;
  const std::string real = resolvedName(directory);
  return real == directory ? std::nullopt : whyNotTree(real);
}

}  // namespace caisson::cli
