// What this host supports, which obstacles exist, and the exact remedy for each.
//
//   const verify::DoctorReport report = verify::diagnose("", policy);
//   print(verify::renderText(report, isatty(1)));
//   return report.full_available ? 0 : 1;
//
// judge() is a pure function of host::Probes, so that tests can cover every obstacle with recorded probe results. It
// explains; whether a level is available is decided by starting a sandbox, as a run does (trial.h).
// Diagnosing leaves nothing on the host but the state directory that a run would make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/trial.h"
#include "host/probe.h"

namespace caisson::verify {

enum class ItemState : std::uint8_t {
  pass,
  degraded,  ///< sandboxes run with less protection; every result reports it
  fail,      ///< levels that need it are not available
};

std::string_view name(ItemState state);

struct DoctorItem {
  std::string name;  ///< "user-namespaces": stable, for scripts
  ItemState state = ItemState::pass;
  std::string found;
  /// What to do; empty on pass. Lines that begin with "$ " are commands to copy, the others are prose.
  std::string remedy;
};

struct LevelVerdict {
  std::string name;  ///< "full", "process", "landlock" (the tier without namespaces), "none"
  bool available = false;
  std::string reason;                     ///< why not, or a note
  std::vector<std::string> allow_weaker;  ///< rungs with which it is available
};

struct DoctorReport {
  std::string host;  ///< "Linux 6.12.9 on x86_64, uid 1000"
  std::vector<DoctorItem> items;
  std::vector<LevelVerdict> levels;
  bool full_available = false;  ///< decides the exit status of `caisson doctor`

  /// Null if there is none of this name.
  [[nodiscard]] const DoctorItem* item(std::string_view name) const;
  [[nodiscard]] const LevelVerdict* level(std::string_view name) const;
};

/// Turns probe results into the report: states, remedies, available levels. Pure.
DoctorReport judge(const host::Probes& probes);

/// Corrects the report by what a run at level full, a run at level process and one in the Landlock tier did. Pure.
void applyTrials(const Trial& full, const Trial& process, const Trial& landlock, DoctorReport& report);

/// Probes this host for the caller, with CAISSON_HOME (or its default) as the state directory, and starts a sandbox at
/// each level with `policy`. `program`: the caisson program, beside which the broker is looked for; empty: the
/// installed one.
DoctorReport diagnose(const std::string& program, const Policy& policy);

/// For users, at most `columns` wide. Wraps prose, but never commands.
std::string renderText(const DoctorReport& report, bool colour, std::size_t columns = 100);
std::string renderJson(const DoctorReport& report);

}  // namespace caisson::verify
