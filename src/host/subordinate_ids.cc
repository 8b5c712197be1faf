#include "host/subordinate_ids.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "base/text.h"
#include "sys/fd.h"
#include "sys/host_program.h"
#include "sys/kernel_file.h"

namespace caisson::host {
namespace {

using plan::SubordinateIds;
using sys::Fd;

constexpr int kHelperTimeoutMs = 10'000;
constexpr const char* kPackage = "install the package uidmap (shadow-utils)";
/// Fixed: PATH is the caller's, and the program runs as root.
constexpr const char* kHelperDirectories[] = {"/usr/bin/", "/bin/", "/usr/local/bin/", "/run/wrappers/bin/"};

std::string findHelper(const char* name) {
  for (const char* directory : kHelperDirectories) {
    std::string path = std::string(directory) + name;
    if (whyNotHelper(path).empty()) return path;
  }
  return {};
}

std::string_view takeField(std::string_view& line) {
  const std::size_t end = std::min(line.find(':'), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Draws a random id from the upper half of the range: containers of the same user number their ids from its start.
std::uint32_t drawFrom(IdRange range) {
  const std::uint32_t half = range.count / 2;
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != sizeof(random)) random = static_cast<std::uint32_t>(::getpid());
  return range.first + half + random % (range.count - half);
}

/// Reads what the program prints until it exits, or until it neither printed nor exited for ten seconds. Keeps the
/// beginning only.
std::string readMessage(int pipe, int pidfd) {
  std::string text;
  for (;;) {
    std::array<pollfd, 2> wait{{{pipe, POLLIN, 0}, {pidfd, POLLIN, 0}}};
    if (::poll(wait.data(), wait.size(), kHelperTimeoutMs) <= 0) return text;
    char buffer[512];
    const ssize_t got = wait[0].revents != 0 ? ::read(pipe, buffer, sizeof(buffer)) : 0;
    if (got > 0 && text.size() < sizeof(buffer)) text.append(buffer, static_cast<std::size_t>(got));
    if (got <= 0 && wait[1].revents != 0) break;
    if (got <= 0) {
      ::poll(&wait[1], 1, kHelperTimeoutMs);
      break;
    }
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Maps `inside` to `outside`, and the ids from 1 on to those of `more`.
Result<void> runHelper(const std::string& program, pid_t pid, unsigned inside, unsigned outside, const IdRange& more) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail(sysError(Stage::launch, "pipe2", program, errno));
  const Fd messages(ends[0]);
  Fd theirs(ends[1]);
  std::vector<std::string> arguments{program, std::to_string(pid), std::to_string(inside), std::to_string(outside),
                                     "1"};
  if (more.count > 0) {
    arguments.insert(arguments.end(), {"1", std::to_string(more.first), std::to_string(more.count)});
  }
  auto helper =
      sys::HostProgram::start({.arguments = std::move(arguments), .descriptors = {{theirs.get(), STDERR_FILENO}}});
  theirs.reset();
  if (!helper) return fail(helper.error());
  const std::string message = readMessage(messages.get(), helper->pidfd());
  if (helper->wait(std::chrono::milliseconds(0)) == 0) return {};
  return fail(plainError(Stage::namespaces, program, std::to_string(outside),
                         message.empty() ? "it failed without a message" : message,
                         more.count > 0 ? "see /etc/subuid and /etc/subgid"
                                        : "see /etc/subuid and /etc/subgid, or set isolation.separate_user to false"));
}

}  // namespace

std::string whyNotHelper(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return path + " is missing";
  if (!S_ISREG(status.st_mode) || status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return path + " is not root's alone";
  const bool privileged =
      (status.st_mode & S_ISUID) != 0 || ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  if (!privileged) return path + " has neither a setuid bit nor file capabilities";
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? "" : path + " cannot be executed";
}

std::optional<IdRange> parseIdRange(std::string_view text, std::string_view name, uid_t uid) {
  std::optional<IdRange> best;
  const std::string digits = std::to_string(uid);
  for (std::string_view line : split(text, '\n')) {
    const std::string_view owner = takeField(line);
    if (owner.empty() || (owner != name && owner != digits)) continue;
    const auto first = number(takeField(line));
    const auto count = number(line);
    if (!first || !count || *count == 0 || *first == 0 || *first > UINT32_MAX - *count) continue;
    if (!best || *count > best->count) best = {*first, *count};
  }
  return best;
}

std::optional<Account> parseAccount(std::string_view passwd, uid_t uid) {
  std::optional<Account> found;
  for (std::string_view line : split(passwd, '\n')) {
    const std::string_view name = takeField(line);
    takeField(line);
    const auto own = number(takeField(line));
    const auto group = number(takeField(line));
    if (!found && !name.empty() && own == uid && group) found = Account{std::string(name), *group};
  }
  return found;
}

SubordinateIds observeSubordinateIds(uid_t uid, gid_t gid) {
  SubordinateIds ids;
  ids.uid_helper = findHelper("newuidmap");
  ids.gid_helper = findHelper("newgidmap");
  const auto without = [&](std::string why) {
    ids.why_not = std::move(why);
    return ids;
  };
  if (ids.uid_helper.empty()) return without(std::string("newuidmap is missing: ") + kPackage);
  if (ids.gid_helper.empty()) return without(std::string("newgidmap is missing: ") + kPackage);
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return without("caisson was started with no_new_privs");
  const auto account = parseAccount(sys::readKernelFile("/etc/passwd"), uid);
  if (!account) return without("the caller is not in /etc/passwd");
  if (account->gid != gid) return without("the caller's group is not its login group, which newuidmap insists on");
  const auto users = parseIdRange(sys::readKernelFile("/etc/subuid"), account->name, uid);
  const auto groups = parseIdRange(sys::readKernelFile("/etc/subgid"), account->name, uid);
  if (!users || !groups) {
    return without(std::string("no ids for ") + account->name + " in " + (users ? "/etc/subgid" : "/etc/subuid") +
                   ": usermod --add-subuids 100000-165535 --add-subgids 100000-165535 " + account->name);
  }
  ids.uids = *users;
  ids.gids = *groups;
  ids.uid = drawFrom(*users);
  ids.gid = drawFrom(*groups);
  return ids;
}

Result<void> mapSubordinateIds(const plan::Identity& identity, pid_t pid) {
  if (auto mapped = runHelper(identity.uid_helper, pid, identity.inside_uid, identity.outside_uid, identity.more_uids);
      !mapped) {
    return mapped;
  }
  return runHelper(identity.gid_helper, pid, identity.inside_gid, identity.outside_gid, identity.more_gids);
}

}  // namespace caisson::host
