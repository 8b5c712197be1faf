// INVARIANTS: what must hold under every policy.
#include "verify/egress_checks.h"
#include "verify/suite.h"

namespace caisson::verify {
namespace {

/// Must be denied because of the missing approval, and for no other reason.
Verdict needsApproval(Context& context, const char* key, const char* value) {
  const Observed seen = context.run({.command = {"true"}, .settings = {{key, value}}});
  if (seen.ran) return failed(std::string(key) + " = " + value + " ran without an approval");
  return seen.refusal.find("approval") != std::string::npos ? passed(seen.refusal) : failed(seen.refusal);
}

constexpr Check kChecks[] = {
    {"invariant.s1", Category::invariants, "INV-S1: a shell runs at level full by default",
     [](Context& context) {
       const Observed seen = context.script(
           "grep -q '^Seccomp:.2' /proc/self/status && [ -d /workspace -o -d /home/sandbox ] && [ ! -e /sys/kernel ] "
           "&& echo full");
       const auto level = seen.result.layers.find("level");
       if (level == seen.result.layers.end() || level->second != "full") return failed("the level is not full");
       return printed(seen, "full\n");
     }},
    {"invariant.s2", Category::invariants, "INV-S2: there is no network by default",
     [](Context& context) {
       return printed(context.script("tail -n +3 /proc/net/dev | grep -vc '^ *lo:'; true"), "0\n");
     }},
    {"invariant.s3", Category::invariants, "INV-S3: egress blocks private ranges", privateRangesAreBlocked},
    {"invariant.s4", Category::invariants, "INV-S4: egress blocks cloud metadata", metadataIsBlocked},
    {"invariant.s5", Category::invariants, "INV-S5: every capability is dropped",
     [](Context& context) { return contained(context.inside({"capabilities"})); }},
    {"invariant.s6", Category::invariants, "INV-S6: the program is not root",
     [](Context& context) { return printed(context.script("[ $(id -u) -ne 0 ] && echo right"), "right\n"); }},
    {"invariant.s7", Category::invariants, "INV-S7: host network and level none need an approval",
     [](Context& context) {
       const Verdict level = needsApproval(context, "isolation.level", "none");
       return level.state == CheckState::passed ? needsApproval(context, "network.mode", "host") : level;
     }},
    {"invariant.s8", Category::invariants, "INV-S8: egress connects to the address it checked", checkedAddressIsUsed},
    {"invariant.s9", Category::invariants, "INV-S9: egress checks redirects again", redirectsAreCheckedAgain},
};

}  // namespace

std::span<const Check> invariantChecks() { return kChecks; }

}  // namespace caisson::verify
