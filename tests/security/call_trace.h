// The system calls of a program and of everything it starts, in the order in which they began.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace caisson::test {

struct TracedCall {
  pid_t thread = 0;
  long number = 0;
  std::uint64_t arguments[6] = {};
  std::int64_t result = 0;                ///< of a call that returned
  std::string text;                       ///< execve: the path
  std::vector<std::uint64_t> attributes;  ///< clone3, landlock_create_ruleset: the structure that they point to
};

struct CallTrace {
  int exit_status = -1;  ///< of the first process; 128+N after signal N
  std::vector<TracedCall> calls;
};

/// Runs `argv` and traces it with ptrace until the first process exits; then whatever is left is killed.
CallTrace traceCalls(const std::vector<std::string>& argv);

}  // namespace caisson::test
