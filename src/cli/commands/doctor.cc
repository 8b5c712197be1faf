// `caisson doctor`: what this machine can enforce, and how to fix the rest.
#include "verify/doctor.h"

#include "approval/owner.h"
#include "caisson/policy.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "policy/profiles/profiles.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print the findings as JSON."};
constexpr Option kOptions[] = {kJson};
constexpr OptionGroup kGroups[] = {{"Output", kOptions}};

/// What `caisson run` uses without a flag and outside of projects.
Result<Policy> basePolicy() {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  return Policy::profile(owner->profile.value_or(std::string(policy::kDefaultProfile)));
}

int perform(const Arguments& arguments) {
  const auto policy = basePolicy();
  if (!policy) return printError(policy.error());
  const verify::DoctorReport report = verify::diagnose(sys::kOwnProgram, *policy);
  const bool colour = !arguments.has(kJson) && wantsColour(1);
  std::string text = arguments.has(kJson) ? verify::renderJson(report) : verify::renderText(report, colour);
  if (!text.ends_with('\n')) text += '\n';
  const int failed = colour ? printBytes(text) : print(text);
  return failed != 0 ? failed : report.full_available ? 0 : 1;
}

}  // namespace

constinit const Verb kDoctor{
    .path = "doctor",
    .summary = "Show what this machine can enforce, and how to fix the rest",
    .description =
        "Checks kernel, namespaces, Landlock, seccomp, cgroups and the like, each with its remedy, and starts a "
        "sandbox as `caisson run` does. The exit status is 0 if that starts at level `full`, else 1.",
    .topic = Topic::machine,
    .syntax = {.groups = kGroups},
    .perform = perform,
};

}  // namespace caisson::cli
