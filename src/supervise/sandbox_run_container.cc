// The events of a run whose payload an OCI runtime starts: messages of the container's pid 1, and the runtime's exit.
#include <signal.h>

#include "plan/runtime.h"
#include "supervise/runtime_launch.h"
#include "supervise/sandbox_run.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

constexpr auto kRuntimeEnd = std::chrono::seconds(10);

}  // namespace

void SandboxRun::limitRuntime(std::chrono::seconds most) {
  loop_.cancel(runtime_deadline_);
  runtime_deadline_ = loop_.at(Clock::now() + most, [this] {
    runtime_deadline_ = 0;
    if (runner_.exit().wait_status) {  // only its own clean-up is left, and that is in memory which the kernel removes
      sys::raw(SYS_pidfd_send_signal, sandbox_.pidfd.get(), SIGKILL, nullptr, 0);
      return;
    }
    runner_.failAndKill(plainError(Stage::launch, plan::runtimeName(plan_.runtime->kind), plan_.runtime->path,
                                   "it did not start the program in time", "leave out --runtime, or use another one"));
  });
}

void SandboxRun::onContainerMessage() {
  for (;;) {
    Arrival arrival;
    const Channel state = receive(sandbox_.container.get(), arrival);
    if (state == Channel::closed) {
      loop_.remove(sandbox_.container.get());
      sandbox_.container.reset();
    }
    if (state != Channel::message) return;
    Message& message = arrival.message;
    switch (message.kind) {
      case MessageKind::prepared:
        container_init_ = arrival.sender;
        container_pidfd_ = Fd(static_cast<int>(sys::raw(SYS_pidfd_open, container_init_, 0)));
        if ((message.descriptors & 2) != 0) streams_.setTerminal(std::move(arrival.descriptors[0]), terminal_streams_);
        break;
      case MessageKind::started: onStarted(message, std::move(arrival.descriptors[0])); [[fallthrough]];
      case MessageKind::running:
        loop_.cancel(runtime_deadline_);
        runtime_deadline_ = 0;
        onRunning();
        break;
      case MessageKind::measured: limits_->setIpcBytes(message.ipc_bytes); break;
      case MessageKind::failure: runner_.fail(errorOf(message)); break;
      case MessageKind::finished:
        runner_.exited(message.wait_status);
        usage_known_ = message.alone;
        if (usage_known_) {
          for (const rusage& used : message.used) addUsage(used, result_.usage);
        }
        limitRuntime(kRuntimeEnd);
        break;
      default: break;
    }
  }
}

void SandboxRun::onRuntimeExit(const Message& message) {
  if (sandbox_.container) onContainerMessage();
  if (!runner_.exit().wait_status)
    runner_.fail(runtimeFailure(*plan_.runtime, message.wait_status, sandbox_.runtime_errors.get()));
  if (!message.alone) return;
  if (!usage_known_) {
    for (const rusage& used : message.used) addUsage(used, result_.usage);
  }
  usage_known_ = true;
  sandboxEmpty();
}

}  // namespace caisson::supervise
