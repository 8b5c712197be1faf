// The processes of one command, found through the sandbox's own /proc.
//
// A payload that daemonises completely (its own session, orphaned) is no longer recognisable as the command's; it lives
// on in the session, within the session's limits, and ends with it.
#include <fcntl.h>
#include <signal.h>

#include <cerrno>

#include "session/init/resident.h"

namespace caisson::session {
namespace {

constexpr int kMaxProcesses = 4096;

struct Process {
  int pid, parent, group, leader;
  long ticks;
  bool ours, stopped;
};

// Touched only while something is being ended.
Process processes[kMaxProcesses];

struct Entry {  // linux_dirent64
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

/// The number at `at`, which moves behind it and one separator.
long number(const char*& at) {
  long value = 0;
  const bool negative = *at == '-';
  if (negative) ++at;
  while (*at >= '0' && *at <= '9') value = value * 10 + (*at++ - '0');
  if (*at != 0) ++at;
  return negative ? -value : value;
}

bool readProcess(int directory, const char* name, Process& process) {
  char path[32];
  int n = 0;
  for (; name[n] != 0; ++n) {
    if (name[n] < '0' || name[n] > '9' || n > 12) return false;
    path[n] = name[n];
  }
  const char* tail = "/stat";
  for (int i = 0; i < 6; ++i) path[n + i] = tail[i];
  const long fd = raw(SYS_openat, directory, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  char text[512];
  const long got = raw(SYS_read, fd, text, sizeof(text) - 1);
  raw(SYS_close, fd);
  if (got <= 0) return false;
  text[got] = 0;
  const char* at = name;
  process.pid = static_cast<int>(number(at));
  // The name in brackets is the payload's to choose and may hold brackets: the last one counts.
  long end = -1;
  for (long i = 0; i < got; ++i) {
    if (text[i] == ')') end = i;
  }
  if (end < 0 || end + 4 >= got) return false;
  if (text[end + 2] == 'Z' || text[end + 2] == 'X') return false;
  at = text + end + 4;
  process.parent = static_cast<int>(number(at));
  process.group = static_cast<int>(number(at));
  process.leader = static_cast<int>(number(at));
  constexpr int kBeforeTimes = 7;  // tty_nr to cmajflt
  for (int field = 0; field < kBeforeTimes; ++field) number(at);
  process.ticks = 0;
  for (int field = 0; field < 4; ++field) process.ticks += number(at);  // own, and of children waited for
  process.ours = process.stopped = false;
  return true;
}

int listProcesses() {
  const long directory = raw(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (directory < 0) return 0;
  int count = 0;
  alignas(8) char room[4096];
  for (;;) {
    const long got = raw(SYS_getdents64, directory, room, sizeof(room));
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const Entry*>(room + at);
      if (count < kMaxProcesses && readProcess(static_cast<int>(directory), entry->name, processes[count])) {
        if (processes[count].pid != 1) ++count;
      }
      at += entry->length;
    }
  }
  raw(SYS_close, directory);
  return count;
}

int markTree(int root, int count) {
  int marked = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < count; ++i) {
      Process& process = processes[i];
      if (process.ours) continue;
      bool ours = process.pid == root || process.leader == root || process.group == root;
      for (int k = 0; !ours && k < count; ++k) ours = processes[k].ours && processes[k].pid == process.parent;
      if (!ours) continue;
      process.ours = changed = true;
      ++marked;
    }
  }
  return marked;
}

}  // namespace

void signalTree(int root, int signal) {
  if (signal == SIGKILL) {
    // Stopped first, round by round until no new one shows: nothing can fork away from what follows.
    int before = -1;
    for (int round = 0; round < 16; ++round) {
      const int count = listProcesses();
      const int marked = markTree(root, count);
      for (int i = 0; i < count; ++i) {
        if (processes[i].ours) raw(SYS_kill, processes[i].pid, SIGSTOP);
      }
      if (marked == before) break;
      before = marked;
    }
  }
  const int count = listProcesses();
  markTree(root, count);
  for (int i = 0; i < count; ++i) {
    if (processes[i].ours) raw(SYS_kill, processes[i].pid, signal);
  }
  if (signal == SIGKILL) raw(SYS_kill, -root, SIGKILL);
}

std::int64_t cpuOfTree(int root) {
  constexpr std::int64_t kTickMs = 10;  // USER_HZ, on every architecture
  const int count = listProcesses();
  markTree(root, count);
  std::int64_t ticks = 0;
  for (int i = 0; i < count; ++i) {
    if (processes[i].ours) ticks += processes[i].ticks;
  }
  return ticks * kTickMs;
}

void endEverything() { raw(SYS_kill, -1, SIGKILL); }

bool anythingRuns() { return raw(SYS_kill, -1, 0) == 0; }

}  // namespace caisson::session
