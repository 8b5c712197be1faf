#include "supervise/supervise.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "supervise/disk/kept_logs.h"
#include "supervise/disk/private_paths.h"
#include "supervise/escape.h"
#include "supervise/limits/cgroup.h"
#include "supervise/network/credentials.h"
#include "supervise/runtime_launch.h"
#include "supervise/sandbox_id.h"
#include "supervise/sandbox_run.h"
#include "supervise/streams/terminal.h"
#include "supervise/syscalls/denials.h"
#include "supervise/weaker_rungs.h"
#include "supervise/workspace/changes.h"
#include "supervise/workspace/exec_config.h"
#include "sys/raw_syscall.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

constexpr int kDrainTimeoutMs = 5000;
constexpr auto kCacheTimeout = std::chrono::milliseconds(1000);

}  // namespace

void addUsage(const rusage& used, Usage& sum) {
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  sum.user_cpu_ms += ms(used.ru_utime);
  sum.system_cpu_ms += ms(used.ru_stime);
  sum.peak_memory_bytes = std::max(sum.peak_memory_bytes, static_cast<std::uint64_t>(used.ru_maxrss) * 1024);
  sum.read_bytes += static_cast<std::uint64_t>(used.ru_inblock) * 512;
  sum.written_bytes += static_cast<std::uint64_t>(used.ru_oublock) * 512;
}

void SandboxRun::run() {
  const auto start = Clock::now();
  auto started = storeStateBefore(plan_);
  if (started) started = launchHeld();
  // In parallel with building the sandbox, which waits with its payload until this is recorded.
  if (auto recorded = record_.begin(plan_, request_, result_.sandbox_id); !recorded) {
    if (started) abandon();
    forgetStateBefore(plan_);
    result_.error = recorded.error();
    if (recorded.error().stage == Stage::policy) {  // in quarantine
      result_.outcome = OutcomeKind::denied;
      result_.denials.push_back({"quarantine", recorded.error().object, "execute", recorded.error().hint});
    }
    return;
  }
  life_.reach(RunState::created);
  if (!started) {
    forgetStateBefore(plan_);
    return setupFailed(started.error(), plan_, result_);
  }
  auto released = storeInit(plan_, sandbox_.init);
  if (released) released = release(sandbox_, cgroup_);
  if (!released) {
    abandon();
    forgetStateBefore(plan_);
    return setupFailed(causeOf(released.error(), sandbox_.control.get()), plan_, result_);
  }
  record_.handOver();
  // The sandbox's sockets wait for the egress process, not the other way round.
  if (plan_.egress) {
    if (auto served = startEgress(std::move(link_.egress)); !served) {
      onMessage();  // if pid 1 failed first, its message has the cause
      runner_.failAndKill(served.error());
    }
  }
  if (plan_.wall_seconds) runner_.limitTime(start, *plan_.wall_seconds);
  if (sandbox_.output) {
    streams_.setOutput(STDOUT_FILENO, std::move(sandbox_.output), request_.out, outputLimit(request_.out),
                       observerOf(STDOUT_FILENO));
  }
  if (sandbox_.errors) {
    streams_.setOutput(STDERR_FILENO, std::move(sandbox_.errors), request_.err, outputLimit(request_.err),
                       observerOf(STDERR_FILENO));
  }
  streams_.setInput(std::move(sandbox_.input));
  if (plan_.cgroup)
    (void)sys::removeAbandonedCgroups(cgroup_base_, cgroup_);  // of killed callers; not during the launch
  std::optional<RawTerminal> raw_mode;
  if (terminal_streams_.any()) raw_mode.emplace(terminal_streams_);
  watch();
  collect(start);
}

std::function<void(std::string_view)> SandboxRun::observerOf(int stream) const {
  if (!options_.on_output) return {};
  return [this, stream](std::string_view piece) { options_.on_output(stream, piece); };
}

std::uint64_t SandboxRun::outputLimit(StreamMode mode) const {
  if (options_.output_limit) return *options_.output_limit;
  return mode == StreamMode::relay && !request_.limit_relayed_output ? kNoOutputLimit : plan_.output_bytes;
}

Result<void> SandboxRun::launchHeld() {
  if (auto bound = ports_.bindPublished(); !bound) return bound;
  if (request_.interactive) terminal_streams_ = observeTerminal(request_);
  if (options_.directories != nullptr) {
    completed_.emplace(plan_);
    namePrivateDirectories(options_.directories->paths, *completed_);
  } else if (RunStore::needed(plan_)) {
    auto store = RunStore::create(result_.sandbox_id, plan_);
    if (!store) return fail(store.error());
    store_.emplace(std::move(*store));
    if (plan_.tier == policy::Tier::landlock) {
      completed_.emplace(plan_);
      namePrivateDirectories(store_->directories().paths, *completed_);
    }
  }
  if (!plan_.attribute_trees.empty()) attributes_.emplace(completed_ ? *completed_ : plan_);
  const bool at_birth = plan_.cgroup && plan_.cgroup->at_birth;
  if (at_birth) {
    if (auto made = prepareCgroup(); !made) return made;
  }
  if (plan_.egress) {
    auto made = egress::makeLink();
    if (!made) return fail(made.error());
    link_ = std::move(*made);
  }
  if (plan_.egress && !plan_.namespaces.network) {
    connector_.emplace(std::move(link_.sandbox), plan_.identity, [this](const egress::Report& report) {
      if (egress_record_) egress_record_->take(report, record_.log(), result_.sandbox_id);
    });
  }
  if (plan_.egress && !plan_.egress->network.credentials.empty()) {
    if (!completed_) completed_.emplace(plan_);
    auto started = startBroker(*completed_, {.program = request_.program, .forget_variables = request_.forget_secrets});
    if (!started) return fail(started.error());
    broker_.emplace(std::move(*started));
  }
  const plan::Plan& plan = completed_ ? *completed_ : plan_;
  const LaunchOptions options{.terminal = terminal_streams_,
                              .handed = handed_,
                              .feed_input = hasInput(request_.relay_stdin, request_.input),
                              .store = store_ ? store_->layers() : std::string(),
                              .directories = diskDirectories() ? diskDirectories()->paths : std::vector<std::string>(),
                              .egress_link = link_.sandbox.get()};
  auto launched = plan.runtime ? launchRuntime(plan, cgroup_, options) : launch(plan, cgroup_, options);
  link_.sandbox.reset();
  if (!launched) return fail(launched.error());
  sandbox_ = std::move(*launched);
  noteUnmapped(sandbox_.unmapped, result_.warnings);
  if (!at_birth) {  // in parallel with building the sandbox
    if (auto made = prepareCgroup(); !made) {
      abandon();
      return made;
    }
  }
  limits_.emplace(plan_, cgroup_, [this](const std::string& what) { record_.limitNear(result_.sandbox_id, what); });
  if (sandbox_.user_namespace) limits_->useNamespace(Fd(::fcntl(sandbox_.user_namespace.get(), F_DUPFD_CLOEXEC, 3)));
  if (diskDirectories() != nullptr) limits_->addDirectories(diskDirectories()->descriptors);
  limits_->countCpu(sandbox_.init);
  return {};
}

const DiskDirectories* SandboxRun::diskDirectories() const {
  return store_ ? &store_->directories() : options_.directories;
}

void SandboxRun::abandon() {
  ::kill(sandbox_.init, SIGKILL);  // our own child, not yet waited for: its pid cannot be reused
  reap(nullptr);
}

void SandboxRun::reap(rusage* usage) {
  const pid_t init = std::exchange(sandbox_.init, -1);
  while (sys::raw(SYS_wait4, init, nullptr, __WALL, usage) == -EINTR) {
  }
}

SandboxRun::~SandboxRun() {
  if (sandbox_.init <= 0) return;
  // pid 1 reported that it exits, but was not reaped. Kill it, so that the wait below cannot block; no timer would do
  // it now.
  ::kill(sandbox_.init, SIGKILL);  // our own child, not yet waited for: its pid cannot be reused
  reap(nullptr);
}

Result<void> SandboxRun::prepareCgroup() {
  if (!plan_.cgroup) return {};
  if (cgroup_base_.kind == sys::CgroupBase::Kind::none) cgroup_base_ = sys::CgroupBase::find();
  // Commands of one session may run at the same time.
  const std::string name = options_.session.empty() ? result_.sandbox_id : newSandboxId();
  auto made = makeCgroup(plan_, cgroup_base_, name, plan_.cpu_seconds.has_value());
  if (!made) return fail(made.error());
  cgroup_ = std::move(*made);
  return {};
}

Result<void> SandboxRun::startEgress(Fd link) {
  egress::Settings settings = egressSettings(plan_);
  settings.ask = canAskAboutHosts();
  if (settings.ask) {
    questions_.emplace(HostPrompter::Span::run, result_.sandbox_id,
                       [this](const HostPrompter::Verdict& verdict) { return egress_->change(verdict.change); });
    prompt_watch_.emplace(loop_, *questions_, streams_);
  }
  auto started =
      egress::Process::start(request_.program, settings, std::move(link), broker_ ? std::move(broker_->egress) : Fd());
  if (!started) return fail(started.error());
  egress_.emplace(std::move(*started));
  egress_record_.emplace();
  return {};
}

void SandboxRun::collect(Clock::time_point start) {
  streams_.drain(kDrainTimeoutMs);
  if (!usage_known_) {
    rusage usage{};
    reap(&usage);
    addUsage(usage, result_.usage);
  }
  result_.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  prompt_watch_.reset();
  questions_.reset();
  if (secret_watch_) secret_watch_->report(result_.notices, result_.warnings);
  secret_watch_.reset();
  if (connector_) connector_->finish();
  if (egress_) {
    egress_->finish(
        [&](const egress::Report& report) { egress_record_->take(report, record_.log(), result_.sandbox_id); });
    egress_record_->fill(result_);
  }
  ports_.finish(result_);
  const LastOutput last{streams_.tail(STDOUT_FILENO), streams_.tail(STDERR_FILENO)};
  streams_.take(result_);
  CommandExit& exit = runner_.exit();
  limits_->finish(exit.killed || !exit.wait_status || WIFSIGNALED(*exit.wait_status), result_);
  if (ranIntoFileSize(exit)) limits_->findFullDirectory();
  limits_->noteCaches(kCacheTimeout);
  exit.out_of_memory = limits_->ranOutOfMemory();
  exit.met = runner_.monitor() && runner_.monitor()->deniedTasks() > 0 ? Limit::processes : limits_->met();
  if (runner_.monitor()) result_.escape = runner_.monitor()->escape();
  classify(std::move(exit), plan_, result_);
  if (runner_.monitor()) runner_.monitor()->report(result_);
  explainLimits(plan_, limits_->full(), limits_->filesInMemory(), result_);
  if (observer_) observer_->report(result_);
  if (result_.escape) respondToEscape(plan_, request_, last, record_.log(), result_);
  if (diskDirectories() != nullptr) finishCaches(*diskDirectories());  // after an escape, which keeps all as evidence
  const bool ran =
      std::ranges::any_of(result_.lifecycle, [](const StateChange& one) { return one.state == RunState::monitoring; });
  ran || result_.outcome != OutcomeKind::setup_failed ? quarantineNewFiles(plan_, result_) : forgetStateBefore(plan_);
  if (changes_ && result_.outcome != OutcomeKind::setup_failed) {
    const ChangedFiles changes = findChangedFiles(changes_.get());
    noteDiscardedChanges(changes, plan_, result_);
    if (changes.count > 0 || !changes.complete) record_.filesChanged(result_.sandbox_id, describeChanges(changes));
  }
  if (limits_->met() == Limit::processes && result_.limit != Limit::processes) {
    record_.limitReached(result_.sandbox_id, Limit::processes);
  }
  KeptLogNotes logs = keepWrittenLogs(plan_, result_.sandbox_id,
                                      [this](std::string_view target) { return limits_->sizedDirectory(target); });
  std::ranges::move(logs.notices, std::back_inserter(result_.notices));
  std::ranges::move(logs.warnings, std::back_inserter(result_.warnings));
}

RunResult supervise(const plan::Plan& plan, const Request& request, sys::CgroupBase cgroups,
                    const SuperviseOptions& options) {
  RunResult result;
  result.sandbox_id = options.session.empty() ? newSandboxId() : options.session;
  if (result.sandbox_id.empty()) {
    result.error = sysError(Stage::launch, "getrandom", "sandbox id", ENOSYS, "run `caisson doctor`");
    return result;
  }
  result.layers = plan.layers;
  result.warnings = plan.warnings;
  result.notices = plan.allNotices();
  // A mask over CAISSON_HOME needs it to exist when the mounts are made, but the log is first opened in parallel with
  // that: create the directory now.
  if (const std::string home = sys::stateHome(); ::access(home.c_str(), F_OK) != 0) (void)sys::makePrivatePath(home);
  RunRecord record;
  Lifecycle life(result.lifecycle, std::chrono::steady_clock::now());
  life.setListener([&](const StateChange& step) { record.entered(result.sandbox_id, step); });
  // Destroyed only after record.end(): the kernel tears down the sandbox while the end is recorded.
  SandboxRun run(plan, request, options, std::move(cgroups), record, life, result);
  run.run();
  if (!result.lifecycle.empty()) {
    life.end(result);
    life.reach(RunState::cleanup);
  }
  record.end(result);
  return result;
}

}  // namespace caisson::supervise
