#include "policy_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return caisson::fuzz::readPolicy(data, size, caisson::policy::Format::toml);
}
