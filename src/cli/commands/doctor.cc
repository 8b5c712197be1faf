// `caisson doctor`: what this machine can enforce, and how to fix the rest.
#include "verify/doctor.h"

#include "cli/output.h"
#include "cli/verb.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print the findings as JSON."};
constexpr Option kOptions[] = {kJson};
constexpr OptionGroup kGroups[] = {{"Output", kOptions}};

int perform(const Arguments& arguments) {
  const verify::DoctorReport report = verify::diagnose(sys::kOwnProgram);
  const std::string text =
      arguments.has(kJson) ? verify::renderJson(report) : verify::renderText(report, wantsColour(1));
  const int failed = print(text.ends_with('\n') ? text : text + "\n");
  return failed != 0 ? failed : report.full_available ? 0 : 1;
}

}  // namespace

constinit const Verb kDoctor{
    .path = "doctor",
    .summary = "Show what this machine can enforce, and how to fix the rest",
    .description =
        "Checks kernel, namespaces, Landlock, seccomp, cgroups and the like, each with its remedy. The exit "
        "status is 0 if level `full` is available, else 1.",
    .topic = Topic::machine,
    .syntax = {.groups = kGroups},
    .perform = perform,
};

}  // namespace caisson::cli
