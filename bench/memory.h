// Memory of a sandbox's own processes while a payload sleeps.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "rows.h"

namespace bench {

struct MemoryResult {
  std::string name;
  unsigned processes = 0;      ///< of the sandbox itself, the payload not counted
  double peak_rss_kib = 0;     ///< sum over them of VmHWM: counts pages they share once for each
  double largest_rss_kib = 0;  ///< VmHWM of the largest
  double peak_pss_kib = 0;     ///< largest sum of proportional sizes seen at one moment
  unsigned unreadable = 0;     ///< processes counted in that sum by VmHWM, their proportional size being unreadable
};

std::vector<MemoryResult> measureMemory(const Options& options, const Scratch& scratch);

}  // namespace bench
