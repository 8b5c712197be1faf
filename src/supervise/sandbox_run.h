// `caisson run`: one sandbox for one command. supervisor.cc starts and ends it, sandbox_run.cc handles its events.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "broker/start.h"
#include "caisson/run.h"
#include "egress/process.h"
#include "isolation/block.h"
#include "plan/plan.h"
#include "supervise/command_runner.h"
#include "supervise/control_channel.h"
#include "supervise/disk/run_store.h"
#include "supervise/escape.h"
#include "supervise/launch.h"
#include "supervise/lifecycle.h"
#include "supervise/limits/limit_watch.h"
#include "supervise/network/egress.h"
#include "supervise/network/host_prompter.h"
#include "supervise/network/prompt_watch.h"
#include "supervise/network/proxy_connector.h"
#include "supervise/network/run_ports.h"
#include "supervise/processes/signal_relay.h"
#include "supervise/run_record.h"
#include "supervise/streams/stream_relay.h"
#include "supervise/supervise.h"
#include "supervise/syscalls/observer.h"
#include "supervise/workspace/direct_parts.h"
#include "supervise/workspace/secret_watch.h"
#include "sys/cgroup.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Adds the usage of a process; of the peak memory, keeps the larger one.
void addUsage(const rusage& used, Usage& sum);

class SandboxRun {
 public:
  SandboxRun(const plan::Plan& plan, const Request& request, const SuperviseOptions& options, sys::CgroupBase cgroups,
             RunRecord& record, Lifecycle& life, RunResult& result)
      : plan_(plan),
        request_(request),
        options_(options),
        record_(record),
        life_(life),
        result_(result),
        signals_(request.forward_signals),
        cgroup_base_(std::move(cgroups)),
        runner_(loop_, [this] { kill(); }),
        handed_(handedStreams(request, plan.identity.change_user || plan.identity.subordinate())),
        kept_flags_(handed_),
        streams_(loop_, request.input, request.relay_stdin && !handed_.stream[0]),
        ports_(
            loop_, plan, result.sandbox_id, [this] { return record_.log(); },
            [this](std::uint32_t number, int family) { return requestSocket(number, family); }) {}
  ~SandboxRun();  ///< kills pid 1, if it has not exited, and waits until the kernel has removed the sandbox
  SandboxRun(const SandboxRun&) = delete;
  SandboxRun& operator=(const SandboxRun&) = delete;

  /// Runs the command to its end and fills the result.
  void run();

 private:
  using Message = isolation::Message;
  using MessageKind = isolation::MessageKind;
  using Fd = sys::Fd;
  using Clock = std::chrono::steady_clock;

  // The start and the end: supervisor.cc.
  /// Starts everything up to pid 1, which builds the sandbox and then waits for release().
  Result<void> launchHeld();
  /// The plan's output limit; none for relayed output, unless the request limits that too.
  [[nodiscard]] std::uint64_t outputLimit(StreamMode mode) const;
  /// Passes a stream's output to SuperviseOptions::on_output; empty without one.
  [[nodiscard]] std::function<void(std::string_view)> observerOf(int stream) const;
  /// The plan's directories on disk: of the run's store, or the caller's. Null if there are none.
  [[nodiscard]] const DiskDirectories* diskDirectories() const;
  /// Creates the plan's cgroup, if it has one.
  Result<void> prepareCgroup();
  /// Starts the egress process, without waiting until it is ready. `link`: its end of the link to pid 1.
  Result<void> startEgress(Fd link);
  /// Kills a sandbox whose payload was never started, and waits for its end.
  void abandon();
  /// Waits for pid 1's exit; `usage` may be null.
  void reap(rusage* usage);
  /// After the end: reads the rest of the output and fills the result.
  void collect(Clock::time_point start);

  // Events while it runs: sandbox_run.cc.
  /// Runs the event loop until the sandbox is empty and its output is written.
  void watch();
  /// After each turn of the event loop: withdraws prompts if the run is over, and stops the loop if nothing is left to
  /// do.
  void onTurn();
  /// The control socket of pid 1 is readable: handles all waiting messages; closes the socket at end of file.
  void onMessage();
  /// The sandbox is built: takes the descriptors that pid 1 sent.
  void onPrepared(Arrival& arrival);
  /// The payload's filter is installed: monitors its blocked calls. Without a listener, kills the run, unless a filter
  /// around caisson prevents it.
  void onStarted(const Message& message, Fd listener);
  /// The payload has executed its program: starts to poll limits (not earlier, since its process had our memory), to
  /// watch for secrets and to serve published ports.
  void onRunning();
  /// Starts to hide secrets that the host creates in the workspace meanwhile.
  void watchSecrets();
  /// Messages of the pid 1 of an OCI runtime's container; sandbox_run_container.cc.
  void onContainerMessage();
  /// The runtime itself exited: an error if the program was never started.
  void onRuntimeExit(const Message& message);
  /// With a runtime: it must start the program in time, and exit in time after the program's end.
  void limitRuntime(std::chrono::seconds most);
  /// pid 1 of the payload's pid namespace, on the host.
  [[nodiscard]] pid_t payloadInit() const { return container_init_ > 0 ? container_init_ : sandbox_.init; }
  /// Whether another pid 1 than the one that was launched starts the payload.
  [[nodiscard]] bool inContainer() const { return plan_.runtime && plan_.runtime->hasInit(); }
  /// pid 1 reaped the payload. If no other process is left, the sandbox counts as empty now.
  void onFinished(const Message& message);
  /// Requests a socket from pid 1; the answer goes to RunPorts::onSocket(). False: pid 1 cannot be reached.
  bool requestSocket(std::uint32_t number, int family);
  /// Fetches descriptors that pid 1 could not send, while it waits. Kills the run if that fails.
  void fetch(Arrival& arrival);
  /// A signal arrived: forwards it to the payload. When only output is left, a termination request stops waiting for
  /// it.
  void forwardSignal(int signal);
  /// Listens for OOM kills of the cgroup. Called some milliseconds after the start, since this costs more than a short
  /// command.
  void listenForMemory();
  /// An OOM kill may have happened: if so, kills the whole tree. cgroup v1 kills only one process.
  void onOutOfMemory();
  /// The egress sent reports, or exited: then the run is killed, which must not continue without it.
  void onEgress();
  /// Sets the timer for the next poll of the limits.
  void armLimits();
  /// Polls the limits and ends the run if one is exceeded.
  void checkLimits();
  /// The cancel descriptor is readable: kills the run, or stops waiting for output if only that is left.
  void cancel();
  /// Whether a user at a terminal can answer prompts for hosts. False for a declared tool: its declaration decides.
  [[nodiscard]] bool canAskAboutHosts() const;
  /// Whether output still waits for a slow reader, such as a pager.
  [[nodiscard]] bool streamsBusy() const;
  /// Kills every process of the sandbox, without waiting for their end. Only runner_ calls it, at most once; use
  /// runner_.end().
  void kill();
  /// No process of the sandbox is left: stops the time limit, and lets ports deliver what was sent.
  void sandboxEmpty();
  /// Sends a message to pid 1 without blocking; a failure is ignored.
  void send(MessageKind kind, int signal = 0);

  const plan::Plan& plan_;
  const Request& request_;
  const SuperviseOptions& options_;
  RunRecord& record_;
  Lifecycle& life_;
  RunResult& result_;
  sys::EventLoop loop_;
  SignalRelay signals_;  // before everything that needs cleanup: a signal must not kill us in between
  Launched sandbox_;
  egress::Link link_;
  TerminalStreams terminal_streams_;
  sys::CgroupBase cgroup_base_;
  sys::Cgroup cgroup_;  // removed with this object, after the last process in it has exited
  std::optional<LimitWatch> limits_;
  Fd out_of_memory_;
  std::optional<RunStore> store_;     // outlives the sandbox, removed with this object
  Fd changes_;                        // the overlay's upper directory
  std::optional<Observer> observer_;  // of a run that learns
  std::optional<FileAttributes> attributes_;
  std::optional<ProxyConnector> connector_;
  host::ScanCache scan_cache_;
  std::optional<SecretWatch> secret_watch_;
  CommandRunner runner_;
  HandedStreams handed_;
  KeptFlags kept_flags_;
  StreamRelay streams_;
  RunPorts ports_;
  std::optional<plan::Plan> completed_;    // with what is known only now: the broker's parts, private directories
  std::optional<broker::Started> broker_;  // holds the credentials' secrets; exits with the egress
  std::optional<egress::Process> egress_;
  std::optional<EgressRecord> egress_record_;
  std::optional<HostPrompter> questions_;
  std::optional<PromptWatch> prompt_watch_;
  bool sandbox_empty_ = false;  // no process is left in it, although pid 1 may still be exiting
  bool usage_known_ = false;    // reported by pid 1; otherwise from wait4
  pid_t container_init_ = -1;   // with an OCI runtime: pid 1 of its container
  Fd container_pidfd_;
  sys::EventLoop::TimerId runtime_deadline_ = 0;
  bool abandoned_ = false;  // stop requested while only output was left
};

}  // namespace caisson::supervise
