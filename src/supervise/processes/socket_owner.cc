#include "supervise/processes/socket_owner.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "supervise/processes/proc_text.h"
#include "supervise/processes/process_tree.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kMaxOpenFiles = 65536;

using Deadline = std::chrono::steady_clock::time_point;
bool isOver(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

/// Returns the next word of a line and removes it from the line.
std::string_view nextWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

template <class Number>
std::optional<Number> numberOf(std::string_view text, int base = 10) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "0100007F:1F90": address words in host byte order, then the port.
std::optional<egress::HostPort> endOf(std::string_view text) {
  constexpr std::size_t kWord = 8;
  const std::size_t digits = text.find(':');
  if (digits != kWord && digits != 4 * kWord) return std::nullopt;
  const auto port = numberOf<std::uint16_t>(text.substr(digits + 1), 16);
  if (!port) return std::nullopt;
  std::array<std::uint8_t, 16> bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // IPv4 is stored as mapped
  std::uint8_t* to = bytes.data() + (digits == kWord ? 12 : 0);
  for (std::size_t at = 0; at < digits; at += kWord, to += sizeof(std::uint32_t)) {
    const auto word = numberOf<std::uint32_t>(text.substr(at, kWord), 16);
    if (!word) return std::nullopt;
    std::memcpy(to, &*word, sizeof(*word));
  }
  return egress::HostPort{{{}, egress::Address::v6(bytes)}, *port};
}

struct Process {
  pid_t number;
  Relations relations;
  bool belongs;
};

/// The host pids of the command's processes; not all of them if the time is over.
std::vector<pid_t> processesOf(pid_t init, pid_t root, Deadline deadline) {
  std::vector<Process> all;
  pid_t first = 0;
  for (const pid_t pid : ProcessTree(init).members()) {
    if (isOver(deadline)) return {};
    if (pid == init) continue;
    const Relations relations = relationsIn(readFile(pid, "stat"));
    if (relations.parent == 0) continue;  // exited meanwhile
    all.push_back({pid, relations, false});
    if (relations.parent == init && innermostNumberIn(readFile(pid, "status")) == root) first = pid;
  }
  std::vector<pid_t> found;
  for (bool more = first != 0; more;) {
    more = false;
    for (Process& process : all) {
      if (process.belongs) continue;
      if (isOver(deadline)) return found;
      const auto& [parent, group, session] = process.relations;
      if (process.number != first && group != first && session != first &&
          std::ranges::find(found, parent) == found.end()) {
        continue;
      }
      process.belongs = more = true;
      found.push_back(process.number);
    }
  }
  return found;
}

bool holds(pid_t pid, const std::string& socket, Deadline deadline) {
  for (const int number : numbersIn(pid, "fd", kMaxOpenFiles)) {
    if (isOver(deadline)) return false;
    char path[64];
    std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
    char text[64];
    const ssize_t got = ::readlink(path, text, sizeof(text));
    if (got > 0 && std::string_view(text, static_cast<std::size_t>(got)) == socket) return true;
  }
  return false;
}

}  // namespace

std::uint64_t inodeIn(std::string_view table, const egress::HostPort& from, const egress::HostPort& to) {
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(table.size(), line.size() + 1));
    nextWord(line);  // its number
    const auto local = endOf(nextWord(line)), remote = endOf(nextWord(line));
    if (!local || !remote || *local != from || *remote != to) continue;
    for (int skipped = 0; skipped < 6; ++skipped) nextWord(line);  // state to timeout
    return numberOf<std::uint64_t>(nextWord(line)).value_or(0);
  }
  return 0;
}

Relations relationsIn(std::string_view stat) {
  // The payload chooses the name in brackets, which may contain brackets: the last one counts.
  const std::size_t end = stat.rfind(')');
  if (end == std::string_view::npos) return {};
  stat.remove_prefix(end + 1);
  nextWord(stat);  // its state
  const auto parent = numberOf<pid_t>(nextWord(stat)), group = numberOf<pid_t>(nextWord(stat)),
             session = numberOf<pid_t>(nextWord(stat));
  if (!parent || !group || !session) return {};
  return {*parent, *group, *session};
}

pid_t innermostNumberIn(std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) return 0;
  status.remove_prefix(at + kKey.size());
  std::string_view line = status.substr(0, status.find('\n'));
  pid_t last = 0;
  for (auto word = nextWord(line); !word.empty(); word = nextWord(line)) last = numberOf<pid_t>(word).value_or(0);
  return last;
}

bool commandHolds(pid_t init, pid_t root, const egress::HostPort& from, const egress::HostPort& to,
                  std::chrono::steady_clock::time_point deadline) {
  std::uint64_t inode = 0;
  for (const char* table : {"net/tcp", "net/tcp6"}) {
    if (inode == 0) inode = inodeIn(readFile(init, table), from, to);
  }
  if (inode == 0) return false;
  const std::string socket = "socket:[" + std::to_string(inode) + "]";
  return std::ranges::any_of(processesOf(init, root, deadline),
                             [&](pid_t pid) { return !isOver(deadline) && holds(pid, socket, deadline); });
}

}  // namespace caisson::supervise
