#include "service/clock.h"

#include <ctime>

#include "session/store/metadata.h"

namespace caisson::service {
namespace {
constexpr std::int64_t kNanoseconds = 1'000'000'000;
}

Instant Instant::now() {
  const session::Moment moment = session::Moment::now();
  return {moment.wall_ns / kNanoseconds, moment.boot_ns / kNanoseconds, moment.boot};
}

std::int64_t Instant::since(const Instant& earlier) const {
  const bool same_boot = !boot_id.empty() && boot_id == earlier.boot_id;
  return same_boot ? boot - earlier.boot : wall - earlier.wall;
}

Json describeInstant(const Instant& instant) {
  return {{"wall", instant.wall}, {"boot", instant.boot}, {"boot_id", instant.boot_id}};
}

Instant readInstant(const Json* value) {
  if (value == nullptr || !value->is_object()) return {};
  return {integerAt(*value, "wall").value_or(0), integerAt(*value, "boot").value_or(0),
          textAt(*value, "boot_id").value_or("")};
}

}  // namespace caisson::service
