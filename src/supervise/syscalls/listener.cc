#include "supervise/syscalls/listener.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

constexpr auto kSlot = std::chrono::milliseconds(10);
constexpr unsigned kPerSlot = 32;
constexpr unsigned kShownPerSlot = 400;
constexpr unsigned kMadePerSlot = 100;  // each takes about a dozen system calls

/// Room for fields of newer kernels; unused bytes must be zero in both directions.
template <class T>
union Room {
  T value;
  char bytes[512];
};

}  // namespace

void Listener::keepPace(std::chrono::steady_clock::time_point now) {
  if (paused_until_ && now >= *paused_until_) paused_until_.reset();
}

void Listener::pause(std::chrono::steady_clock::duration duration) {
  if (duration <= duration.zero()) return;
  const auto until = std::chrono::steady_clock::now() + duration;
  paused_until_ = std::max(paused_until_.value_or(until), until);
}

std::optional<Attempt> Listener::next(std::chrono::steady_clock::time_point now) {
  if (now - slot_begin_ >= kSlot) {
    slot_begin_ = now;
    in_slot_ = shown_in_slot_ = made_in_slot_ = 0;
  }
  if (++in_slot_ >= kPerSlot) paused_until_ = slot_begin_ + kSlot;
  Room<seccomp_notif> room;
  std::memset(&room, 0, sizeof(room));
  // Never blocks: each notification that poll reported leaves a count, even if its process exited (then: ENOENT).
  if (::ioctl(descriptor_.get(), SECCOMP_IOCTL_NOTIF_RECV, &room) != 0) return std::nullopt;
  const seccomp_notif& got = room.value;
  Attempt attempt{got.id, static_cast<pid_t>(got.pid), got.data.arch, got.data.nr, {}};
  std::memcpy(attempt.arguments, got.data.args, sizeof(attempt.arguments));
  return attempt;
}

void Listener::respond(const Attempt& attempt, int error, std::uint32_t flags) const {
  Room<seccomp_notif_resp> room;
  std::memset(&room, 0, sizeof(room));
  room.value.id = attempt.id;
  room.value.error = -error;
  room.value.flags = flags;
  (void)::ioctl(descriptor_.get(), SECCOMP_IOCTL_NOTIF_SEND, &room);  // ENOENT: the process died meanwhile
}

void Listener::refuse(const Attempt& attempt, int error) const { respond(attempt, error, 0); }

void Listener::continueCall(const Attempt& attempt) {
  respond(attempt, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
  countShown();
}

void Listener::continueCallRateLimited(const Attempt& attempt) const {
  respond(attempt, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void Listener::answer(const Attempt& attempt, std::uint64_t address, std::span<const std::byte> bytes) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/mem", attempt.pid);
  const sys::Fd memory(::open(path, O_WRONLY | O_CLOEXEC));
  if (!memory) return continueCall(attempt);
  // The file stays that of the memory it was opened for: if the thread still waits now, that is its own.
  if (!isValid(attempt)) return;
  const ssize_t written = ::pwrite(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(address));
  respond(attempt, written == static_cast<ssize_t>(bytes.size()) ? 0 : EFAULT, 0);
  countShown();
}

void Listener::finishCall(const Attempt& attempt, int error) {
  respond(attempt, error, 0);
  countSeparately(made_in_slot_, kMadePerSlot);
}

int Listener::replaceDescriptor(const Attempt& attempt, int number, int descriptor, bool close_on_exec) const {
  seccomp_notif_addfd added{};
  added.id = attempt.id;
  added.flags = SECCOMP_ADDFD_FLAG_SETFD;
  added.srcfd = static_cast<std::uint32_t>(descriptor);
  added.newfd = static_cast<std::uint32_t>(number);
  added.newfd_flags = close_on_exec ? O_CLOEXEC : 0;
  return ::ioctl(descriptor_.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &added) >= 0 ? 0 : errno;
}

void Listener::countShown() { countSeparately(shown_in_slot_, kShownPerSlot); }

void Listener::countSeparately(unsigned& count, unsigned most) {
  if (in_slot_ > 0) --in_slot_;
  if (in_slot_ + 1 < kPerSlot) paused_until_.reset();
  if (++count >= most) paused_until_ = slot_begin_ + kSlot;
}

/// Call after using the pid: it may have been reused, and then the notification is no longer valid.
bool Listener::isValid(const Attempt& attempt) const {
  std::uint64_t id = attempt.id;
  return ::ioctl(descriptor_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

std::string Listener::programOf(const Attempt& attempt) const {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/exe", attempt.pid);
  char target[4096];
  const ssize_t length = ::readlink(path, target, sizeof(target));
  if (length <= 0 || !isValid(attempt)) return {};
  return {target, static_cast<std::size_t>(length)};
}

bool Listener::isForeignProgram(const Attempt& attempt) const {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/exe", attempt.pid);
  const sys::Fd executable(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char head[EI_NIDENT] = {};
  const bool read = executable && ::pread(executable.get(), head, sizeof(head), 0) == sizeof(head);
  return read && isValid(attempt) && std::memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS32;
}

void Listener::endProcess(const Attempt& attempt) const {
  const sys::Fd process(static_cast<int>(sys::raw(SYS_pidfd_open, attempt.pid, 0)));
  if (process && isValid(attempt) && sys::raw(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) == 0) return;
  refuse(attempt, ENOSYS);
}

}  // namespace caisson::supervise
