#include "audit.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "process.h"
#include "rows.h"

namespace bench {

AuditResult measureAudit(const Options& options, const Scratch& scratch) {
  AuditResult result;
  const auto program = findProgram(options.tools + "/audit_events");
  if (!program) {
    result.absent = "built without the engine";
    return result;
  }
  std::array<double, 3> rates{};
  for (std::size_t at = 0; at < rates.size(); ++at) {
    const Captured run = capture(
        {{*program, scratch.path("audit-" + std::to_string(at)), "2"}, scratch.workspace(), cleanEnvironment(scratch)});
    if (run.status != 0) {
      result.absent = "audit_events failed: " + run.err.substr(0, run.err.find('\n'));
      return result;
    }
    rates[at] = std::strtod(run.out.c_str(), nullptr);
  }
  std::sort(rates.begin(), rates.end());
  result.events_per_second = rates[1];
  return result;
}

}  // namespace bench
