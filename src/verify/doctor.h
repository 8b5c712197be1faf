// What this host offers a sandbox, what is in the way, and the exact remedy (SPEC V2).
//
//   const verify::DoctorReport report = verify::diagnose();
//   print(verify::renderText(report, isatty(1)));
//   return report.full_available ? 0 : 1;
//
// The judgement is a pure function of sys::Probes, so that every obstacle is tested by writing down what a host with
// that obstacle answers. Diagnosing changes nothing on the host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sys/probe.h"

namespace caisson::verify {

enum class ItemState : std::uint8_t {
  pass,
  degraded,  ///< sandboxes run, with something less; every result says so
  fail,      ///< a level that needs it is refused
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
  std::string reason;  ///< why not, or what to know about it
};

struct DoctorReport {
  std::string host;  ///< "Linux 6.12.9 on x86_64, uid 1000"
  std::vector<DoctorItem> items;
  std::vector<LevelVerdict> levels;
  bool full_available = false;  ///< decides the exit status of `caisson doctor`

  [[nodiscard]] const DoctorItem* item(std::string_view name) const;
  [[nodiscard]] const LevelVerdict* level(std::string_view name) const;
};

/// Pure.
DoctorReport judge(const sys::Probes& probes);

/// Probes this host for the caller, with CAISSON_HOME (or its default) as the state directory.
DoctorReport diagnose();

/// For a person, at most `columns` wide. Prose is wrapped; commands are never broken.
std::string renderText(const DoctorReport& report, bool colour, std::size_t columns = 100);
std::string renderJson(const DoctorReport& report);

}  // namespace caisson::verify
