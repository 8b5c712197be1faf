// For the file with main() only: replaces the terminate handler of libstdc++, whose demangler is 60 KB of a static
// program.
#pragma once

#include <cstdlib>
#include <exception>

#include "cli/output.h"

namespace __gnu_cxx {
void __verbose_terminate_handler();   // NOLINT(bugprone-reserved-identifier)
void __verbose_terminate_handler() {  // NOLINT(bugprone-reserved-identifier)
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& problem) {
    caisson::cli::printNotice(problem.what());
  } catch (...) {
    caisson::cli::printNotice("unhandled exception");
  }
  std::abort();
}
}  // namespace __gnu_cxx
