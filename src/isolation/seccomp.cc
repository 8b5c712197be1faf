// The system-call filter, and how the supervisor comes to hear of what it refuses.
#include <linux/seccomp.h>
#include <sys/socket.h>

#include <cerrno>

#include "isolation/child.h"
#include "plan/syscall_filter.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {
namespace {

/// The same program for a filter without a listener: refused calls stay refused, a call of another architecture ends
/// the process.
void refuseUnheard(const sock_fprog& program) {
  for (unsigned short i = 0; i < program.len; ++i) {
    sock_filter& step = program.filter[i];
    if (step.code != (BPF_RET | BPF_K) || (step.k & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_USER_NOTIF) continue;
    const std::uint32_t error = step.k & SECCOMP_RET_DATA;
    step.k = error != 0 ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_KILL_PROCESS;
    // It was only to be shown; or the kernel has to give the result itself.
    if (error == plan::kObserve.error || error == plan::kAnswer.error) step.k = SECCOMP_RET_ALLOW;
  }
}

long install(const Block& block, std::uint64_t flags) {
  return raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &block.filter);
}

}  // namespace

Listening installFilter(const Block& block) {
  if (!block.has_filter) return {};
  long result = -EBUSY;
  if (block.listen) {
    // Killable: once the supervisor has read an attempt, a signal does not make the payload repeat (and us count) it.
    result = install(block, sys::kSeccompNewListener | sys::kSeccompWaitKillable);
    if (result == -EINVAL) result = install(block, sys::kSeccompNewListener);
    if (result >= 0) return {static_cast<int>(result), 0};
    // Anything but a listener that is there already: the payload must not run unseen.
    if (result != -EBUSY) must(block, Stage::seccomp, "seccomp", "SECCOMP_FILTER_FLAG_NEW_LISTENER", result);
  }
  // The kernel has one listener per process at most: a container engine around us, or a caisson, may be that one.
  refuseUnheard(block.filter);
  must(block, Stage::seccomp, "seccomp", "SECCOMP_SET_MODE_FILTER", install(block, 0));
  return {-1, static_cast<int>(-result)};
}

void handOverListener(const Block& block, const Listening& listening) {
  Message message{};
  // A supervisor that is not told holds the payload to no limit. Then pid 1 finds the socket ended, and ends
  // everything.
  const auto unheard = [&] { raw(SYS_shutdown, block.control, SHUT_RDWR); };
  if (!block.listen) {
    message.kind = MessageKind::running;
    if (sendMessage(block.control, message, nullptr, 0) < 0) unheard();
    return;
  }
  if (listening.descriptor < 0 && listening.error == 0) return;  // it did not come that far
  message.kind = MessageKind::started;
  message.error = listening.error;
  const std::size_t count = listening.descriptor >= 0 ? 1 : 0;
  long sent = sendMessage(block.control, message, &listening.descriptor, count);
  if (sent < 0 && count > 0) {
    // Closed below, so that every call it would have answered fails; the supervisor ends a sandbox it cannot watch.
    message.error = static_cast<std::int32_t>(sent);
    sent = sendMessage(block.control, message, nullptr, 0);
  }
  if (sent < 0) unheard();
  closeFd(listening.descriptor);
}

}  // namespace caisson::isolation
