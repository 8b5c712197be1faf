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
#include "supervise/network/host_questions.h"
#include "supervise/network/question_watch.h"
#include "supervise/network/run_ports.h"
#include "supervise/processes/signal_relay.h"
#include "supervise/run_record.h"
#include "supervise/streams/stream_relay.h"
#include "supervise/syscalls/observer.h"
#include "supervise/workspace/secret_watch.h"
#include "sys/cgroup.h"
#include "sys/event_loop.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Adds the usage of a process.
void addUsage(const rusage& used, Usage& sum);

class SandboxRun {
 public:
  SandboxRun(const plan::Plan& plan, const Request& request, sys::CgroupBase cgroups, RunRecord& record,
             Lifecycle& life, RunResult& result)
      : plan_(plan),
        request_(request),
        record_(record),
        life_(life),
        result_(result),
        signals_(request.forward_signals),
        cgroup_base_(std::move(cgroups)),
        runner_(loop_, [this] { kill(); }),
        handed_(handedStreams(request, plan.identity.change_user || plan.identity.subordinate())),
        streams_(loop_, request.input, request.relay_stdin && !handed_.stream[0]),
        ports_(
            loop_, plan, result.sandbox_id, [this] { return record_.log(); },
            [this](std::uint32_t number, int family) { return requestSocket(number, family); }) {}
  ~SandboxRun();  ///< waits until the kernel has removed the sandbox
  SandboxRun(const SandboxRun&) = delete;
  SandboxRun& operator=(const SandboxRun&) = delete;

  void run();

 private:
  using Message = isolation::Message;
  using MessageKind = isolation::MessageKind;
  using Fd = sys::Fd;
  using Clock = std::chrono::steady_clock;

  // The start and the end: supervisor.cc.
  Result<void> launchHeld();
  [[nodiscard]] std::uint64_t outputLimit(StreamMode mode) const;
  Result<void> prepareCgroup();
  Result<void> startEgress(Fd link);
  void abandon();
  void reap(rusage* usage);
  void collect(Clock::time_point start);

  // Events while it runs: sandbox_run.cc.
  void watch();
  void onTurn();
  void onMessage();
  void onPrepared(Arrival& arrival);
  void onStarted(const Message& message, Fd listener);
  void onRunning();
  void watchSecrets();
  void onFinished(const Message& message);
  bool requestSocket(std::uint32_t number, int family);
  void fetch(Arrival& arrival);
  void forwardSignal(int signal);
  void listenForMemory();
  void onOutOfMemory();
  void onEgress();
  void armLimits();
  void checkLimits();
  void cancel();
  [[nodiscard]] bool canAskAboutHosts() const;
  [[nodiscard]] bool streamsBusy() const;
  void kill();
  void sandboxEmpty();
  void send(MessageKind kind, int signal = 0);

  const plan::Plan& plan_;
  const Request& request_;
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
  host::ScanCache scan_cache_;
  std::optional<SecretWatch> secret_watch_;
  CommandRunner runner_;
  HandedStreams handed_;
  StreamRelay streams_;
  RunPorts ports_;
  std::optional<plan::Plan> completed_;    // with the parts that only the broker could add
  std::optional<broker::Started> broker_;  // holds the credentials' secrets; exits with the egress
  std::optional<egress::Process> egress_;
  std::optional<EgressRecord> egress_record_;
  std::optional<HostQuestions> questions_;
  std::optional<QuestionWatch> question_watch_;
  bool sandbox_empty_ = false;  // no process is left in it, although pid 1 may still be exiting
  bool usage_known_ = false;    // reported by pid 1; otherwise from wait4
  bool abandoned_ = false;      // stop requested while only output was left
};

}  // namespace caisson::supervise
