// Installs the system-call filter and sends its listener to the supervisor, which is notified of blocked calls.
#include <linux/seccomp.h>
#include <sys/socket.h>

#include <cerrno>

#include "isolation/child.h"
#include "plan/syscall_filter.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {
namespace {

/// Replaces every notification in the program, for a filter without a listener: denied calls get their errno, a call of
/// another architecture kills the process.
void replaceNotifications(const sock_fprog& program) {
  for (unsigned short i = 0; i < program.len; ++i) {
    sock_filter& step = program.filter[i];
    if (step.code != (BPF_RET | BPF_K) || (step.k & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_USER_NOTIF) continue;
    const std::uint32_t error = step.k & SECCOMP_RET_DATA;
    step.k = error != 0 ? SECCOMP_RET_ERRNO | error : SECCOMP_RET_KILL_PROCESS;
    // The call was only to be reported, or the supervisor was to give the result: the kernel handles it instead.
    if (error == plan::kObserve.error || error == plan::kAnswer.error) step.k = SECCOMP_RET_ALLOW;
    if (error == plan::kServe.error) step.k = SECCOMP_RET_ERRNO | EPERM;
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
    // EBUSY: there is a listener already. After any other error the payload must not run unobserved.
    if (result != -EBUSY) must(block, Stage::seccomp, "seccomp", "SECCOMP_FILTER_FLAG_NEW_LISTENER", result);
  }
  // A process can have one listener at most, and a container engine or another caisson around us may be that.
  replaceNotifications(block.filter);
  must(block, Stage::seccomp, "seccomp", "SECCOMP_SET_MODE_FILTER", install(block, 0));
  return {-1, static_cast<int>(-result)};
}

void handOverListener(const Block& block, const Listening& listening) {
  Message message{};
  // Without this message the supervisor would enforce no limit. So if it cannot be sent, shut down the socket: pid 1
  // sees the end of file and exits, which ends the sandbox.
  const auto unheard = [&] { raw(SYS_shutdown, block.control, SHUT_RDWR); };
  if (!block.listen) {
    message.kind = MessageKind::running;
    if (sendMessage(block.control, message, nullptr, 0) < 0) unheard();
    return;
  }
  if (listening.descriptor < 0 && listening.error == 0) return;  // the launch failed before the filter
  message.kind = MessageKind::started;
  message.error = listening.error;
  const std::size_t count = listening.descriptor >= 0 ? 1 : 0;
  long sent = sendMessage(block.control, message, &listening.descriptor, count);
  if (sent < 0 && count > 0) {
    // Without a listener every notified call fails (it is closed below). The supervisor kills a sandbox that it cannot
    // observe.
    message.error = static_cast<std::int32_t>(sent);
    sent = sendMessage(block.control, message, nullptr, 0);
  }
  if (sent < 0) unheard();
  closeFd(listening.descriptor);
}

}  // namespace caisson::isolation
