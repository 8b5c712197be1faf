#include "supervise/runtime_launch.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "isolation/compile.h"
#include "plan/runtime.h"
#include "runtime/init_program.h"
#include "runtime/outer_plan.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kMaxMessage = 1024;

struct ControlPair {
  sys::Fd ours, theirs;
};

/// With the sender's pid on each message: the supervisor watches the processes below pid 1 of the container.
Result<ControlPair> makeContainerControl() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(sysError(Stage::launch, "socketpair", "container", errno));
  ControlPair pair{sys::Fd(ends[0]), sys::Fd(ends[1])};
  const int on = 1;
  if (::setsockopt(pair.ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
    return fail(sysError(Stage::launch, "setsockopt", "SO_PASSCRED", errno));
  return pair;
}

}  // namespace

Result<Launched> launchRuntime(const plan::Plan& plan, const sys::Cgroup& cgroup, LaunchOptions options) {
  if (!plan.runtime->hasInit()) return launch(runtime::outerPlan(plan, {}), cgroup, options);
  auto control = makeContainerControl();
  if (!control) return fail(control.error());
  isolation::BlockSpace space;
  const auto block = space.compile(runtime::payloadPlan(plan), [&](isolation::Block& payload) {
    for (int stream = 0; stream < 3; ++stream) {
      payload.terminal[stream] = options.terminal.stream[stream];
      payload.stream_rights[stream] = options.handed.reopen_rights[stream] & plan.landlock.handled_fs;
    }
    payload.wants_terminal = options.terminal.any();
    payload.rows = options.terminal.rows;
    payload.columns = options.terminal.columns;
  });
  if (!block) return fail(block.error());
  const ContainerEnds ends{control->theirs.get(), block->file.get()};
  options.container = &ends;
  const plan::Plan outer =
      runtime::outerPlan(plan, {block->address, block->bytes, std::string(runtime::initProgram())});
  auto launched = launch(outer, cgroup, options);
  if (launched) launched->container = std::move(control->ours);
  return launched;
}

Error runtimeFailure(const plan::RuntimePlan& runtime, int wait_status, int errors) {
  const std::string name(plan::runtimeName(runtime.kind));
  std::string text(kMaxMessage, '\0');
  const ssize_t got = errors >= 0 ? ::read(errors, text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& letter : text) letter = letter >= ' ' && letter < 0x7F ? letter : letter == '\n' ? ';' : '?';
  const std::string status = WIFEXITED(wait_status) ? "exit status " + std::to_string(WEXITSTATUS(wait_status))
                                                    : "signal " + std::to_string(WTERMSIG(wait_status));
  return plainError(
      Stage::launch, name, runtime.path,
      name + " failed before the program was started (" + status + ")" + (text.empty() ? "" : ": " + text),
      "leave out --runtime, or use another one");
}

}  // namespace caisson::supervise
