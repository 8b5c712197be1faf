// The property every policy reader must keep: whatever the bytes, it returns. It never crashes, throws or hangs, and
// a policy it accepts says the same after a round trip through JSON.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/decode/decode.h"
#include "policy/describe/explain.h"
#include "policy/describe/json.h"
#include "policy/fields.h"

namespace caisson::fuzz {

inline int readPolicy(const std::uint8_t* data, std::size_t size, policy::Format format) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto first = policy::parse(text, format, "fuzz");
  if (!first) {
    if (first.error().message().empty()) std::abort();
    return 0;
  }
  const auto second = policy::parse(policy::toJson(*first), policy::Format::json, "fuzz");
  if (!second || !policy::sameSettings(*first, *second)) std::abort();
  if (policy::explain(*first).empty()) std::abort();
  return 0;
}

}  // namespace caisson::fuzz
