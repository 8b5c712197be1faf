// Hosts that a person is asked about while the connections to them wait (SPEC A1).
//
// The payload chooses what is asked, so it is bounded: each target is asked about once at most, and only so many.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace caisson::egress {

class Questions {
 public:
  enum class Step : std::uint8_t { ask, wait, refuse };

  /// What a connection to `target`, which is not permitted, does: its question goes out, it waits for an answer that
  /// is due, or it is refused, since the answer was no or enough was asked.
  Step about(const std::string& target);
  /// Whether about() could lead to anything but a refusal.
  [[nodiscard]] bool mayAsk(const std::string& target) const;
  /// An answer has come. A refused one is not asked about again; one that was let through once is.
  void answered(const std::string& target, bool refused);

 private:
  std::set<std::string> open_, refused_;
  std::size_t asked_ = 0;
};

}  // namespace caisson::egress
