// Lines for a person who waits for the first search of a large workspace.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace caisson::host {

/// For ScanOptions::progress: calls `show` after a second, and every five seconds from then on. Empty if `show` is.
inline std::function<void(std::size_t)> searchProgress(const std::function<void(const std::string&)>& show) {
  if (!show) return {};
  using Clock = std::chrono::steady_clock;
  return [show, next = Clock::now() + std::chrono::seconds(1)](std::size_t entries) mutable {
    if (Clock::now() < next) return;
    next = Clock::now() + std::chrono::seconds(5);
    show("searching the workspace for secret files: " + std::to_string(entries) + " entries so far");
  };
}

}  // namespace caisson::host
