#include "runtime/init_program.h"

#include <cstddef>

// clang-format off
asm(".section .rodata\n"
    ".balign 16\n"
    "caissonRuntimeInit:\n"
    ".incbin \"" CAISSON_RUNTIME_INIT "\"\n"
    "caissonRuntimeInitEnd:\n"
    ".previous\n");
// clang-format on
extern "C" {
extern const char caissonRuntimeInit[] __attribute__((visibility("hidden")));
extern const char caissonRuntimeInitEnd[] __attribute__((visibility("hidden")));
}

namespace caisson::runtime {

std::string_view initProgram() {
  return {caissonRuntimeInit, static_cast<std::size_t>(caissonRuntimeInitEnd - caissonRuntimeInit)};
}

}  // namespace caisson::runtime
