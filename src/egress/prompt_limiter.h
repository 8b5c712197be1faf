// Hosts that the user is prompted for while connections to them wait.
//
// The payload chooses the hosts, so prompts are bounded: at most one per target, and a limited total.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace caisson::egress {

class PromptLimiter {
 public:
  enum class Step : std::uint8_t { ask, wait, refuse };

  /// What to do with a connection to `target`, which is not allowed: send a question, which is then pending until
  /// answered(), wait for a pending one, or deny it because the answer was "no" or the limit is reached.
  Step next(const std::string& target);
  /// Whether next() could return anything but a denial.
  [[nodiscard]] bool mayAsk(const std::string& target) const;
  /// Closes the pending question about `target`; does nothing if there is none. If `refused`, there is never another
  /// one about it.
  void answered(const std::string& target, bool refused);

 private:
  std::set<std::string> open_, refused_;
  std::size_t asked_ = 0;
};

}  // namespace caisson::egress
