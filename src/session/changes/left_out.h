// The list of what a copy or an export left out, bounded: a payload can make any number of such files.
#pragma once

#include <string>
#include <vector>

#include "caisson/session.h"

namespace caisson::session {

/// Adds a path with its reason; the thousandth and later ones become one entry "more".
inline void addLeftOut(std::vector<LeftOut>& list, const std::string& path, std::string reason) {
  constexpr std::size_t kMax = 1000;
  if (list.size() < kMax) list.push_back({path, std::move(reason)});
  if (list.size() == kMax) list.back() = {"more", "further paths were left out as well"};
}

}  // namespace caisson::session
