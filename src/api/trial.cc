#include "api/trial.h"

#include "caisson/run.h"
#include "policy/model.h"

namespace caisson {
namespace {

constexpr double kTrialSeconds = 20;

Trial tryOnce(const Policy& policy) {
  Trial trial;
  Request request{.policy = policy, .command = {"true"}};
  policy::Policy& model = request.policy.model();
  model.audit.enabled = false;
  model.resources.wall_seconds = kTrialSeconds;
  request.quarantine = false;
  const auto result = run(request);
  if (!result) {
    trial.error = result.error();
    return trial;
  }
  // An image without `true`: the sandbox was built nevertheless.
  const bool no_program = result->error && result->error->code == ErrorCode::program_not_started;
  trial.started = result->outcome == OutcomeKind::exited || no_program;
  trial.layers = result->layers;
  if (trial.started) return trial;
  trial.error = result->error
                    ? *result->error
                    : plainError(Stage::launch, "run", "true",
                                 "the program did not end as expected: " + std::string(name(result->outcome)));
  return trial;
}

}  // namespace

Trial tryLaunch(const Policy& policy) {
  Trial trial = tryOnce(policy);
  if (trial.started || !trial.error || trial.error->code != ErrorCode::masked_proc) return trial;
  for (const char* rung : {"proc_subset", "proc_bound"}) {
    Policy weaker = policy;
    if (!weaker.append("isolation.may_be_missing", rung)) continue;
    Trial with = tryOnce(weaker);
    if (!with.started) continue;
    with.rungs = {rung};
    with.error = trial.error;
    return with;
  }
  return trial;
}

}  // namespace caisson
