// One run under supervision, as supervisor.cc starts and ends it and supervision.cc watches it.
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
#include "supervise/control_channel.h"
#include "supervise/egress.h"
#include "supervise/escape.h"
#include "supervise/host_questions.h"
#include "supervise/input_feed.h"
#include "supervise/launch.h"
#include "supervise/lifecycle.h"
#include "supervise/limit_watch.h"
#include "supervise/observer.h"
#include "supervise/outcome.h"
#include "supervise/refusals.h"
#include "supervise/run_record.h"
#include "supervise/run_store.h"
#include "supervise/signal_relay.h"
#include "supervise/stream.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

namespace caisson::supervise {

inline constexpr std::uint64_t kNoOutputLimit = ~0ULL;

/// Adds what a process used.
void addUsage(const rusage& used, Usage& sum);

class Supervision {
 public:
  Supervision(const plan::Plan& plan, const Request& request, sys::CgroupBase cgroups, RunRecord& record,
              Lifecycle& life, RunResult& result)
      : plan_(plan),
        request_(request),
        record_(record),
        life_(life),
        result_(result),
        signals_(request.forward_signals),
        cgroup_base_(std::move(cgroups)),
        refusals_(
            plan,
            {.end = [this] { kill(); },
             .record = [this](const Violation& one) { recordViolation(record_.log(), result_.sandbox_id, one); }}),
        input_(request.input, request.relay_stdin) {}
  ~Supervision();  ///< waits until the kernel has taken the sandbox apart
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  void run();

 private:
  using Message = isolation::Message;
  using MessageKind = isolation::MessageKind;
  using Fd = sys::Fd;
  using Clock = std::chrono::steady_clock;

  // The start and the end: supervisor.cc.
  Result<void> launchHeld();
  Result<void> prepareCgroup();
  Result<void> startEgress(Fd link);
  void abandon();
  void reap(rusage* usage);
  void collect(Clock::time_point start);

  // Meanwhile: supervision.cc.
  void watch();
  void onMessage();
  void onPrepared(Arrival& arrival);
  void onStarted(const Message& message, Fd listener);
  void onFinished(const Message& message);
  void fetch(Arrival& arrival);
  void useTerminal(Fd master);
  void onSignal(int signal);
  void listenForMemory();
  void onOutOfMemory();
  void onEgress();
  [[nodiscard]] bool canAskAboutHosts() const;
  void checkDeadlines();
  [[nodiscard]] int timeoutMs() const;
  [[nodiscard]] bool streamsBusy() const;
  void endFor(Limit limit);
  void kill();
  void nobodyLeft();
  void sendSignal(int signal);
  void send(MessageKind kind, int value = 0);

  const plan::Plan& plan_;
  const Request& request_;
  RunRecord& record_;
  Lifecycle& life_;
  RunResult& result_;
  SignalRelay signals_;  // before all that has to be removed again: a signal must not end us in between
  Launched sandbox_;
  egress::Link link_;
  TerminalStreams terminal_streams_;
  sys::CgroupBase cgroup_base_;
  sys::Cgroup cgroup_;  // removed with this object, after the last process in it is gone
  std::optional<LimitWatch> limits_;
  Fd out_of_memory_;
  std::optional<RunStore> store_;     // outlives the sandbox, goes with this object
  Fd changes_;                        // the overlay's upper directory
  Fd terminal_;                       // master side of the sandbox's pty
  std::optional<Observer> observer_;  // of a run that is watched
  Refusals refusals_;                 // what the payload tries and may not
  std::optional<OutputStream> out_, err_;
  InputFeed input_;
  std::optional<Clock::time_point> deadline_, grace_, listen_for_memory_;
  Ending ending_;
  std::optional<plan::Plan> completed_;    // with what only the broker could add
  std::optional<broker::Started> broker_;  // holds the credentials' secrets; ends with the egress
  std::optional<egress::Process> egress_;
  std::optional<EgressRecord> egress_record_;
  std::optional<HostQuestions> questions_;
  bool init_gone_ = false;    // or as good as: nothing runs in the sandbox any more
  bool usage_known_ = false;  // from pid 1 itself; otherwise its end tells
  bool abandoned_ = false;    // asked to end while only passing output on
  int terminate_requests_ = 0;
};

}  // namespace caisson::supervise
