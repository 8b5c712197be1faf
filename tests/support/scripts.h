// Shell scripts that several suites run inside a sandbox.
#pragma once

#include <string>

namespace caisson::test {

/// Reads a file until that fails, at most 5 s, then once more to standard output. Prints nothing if it was hidden.
inline std::string readUntilHidden(const std::string& path) {
  return "i=0; while cat " + path + " > /dev/null 2>&1 && [ $i -lt 500 ]; do i=$((i+1)); sleep 0.01; done; cat " +
         path + " && echo visible; ";
}

}  // namespace caisson::test
