// Runs one line of untrusted Python in a sandbox and prints its output.
//   cmake -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build && build/run_python 'print(1)'
#include <caisson/caisson.h>

#include <cstdio>

int main(int argc, char** argv) {
  auto policy = caisson::Policy::profile("bash");
  if (!policy) return std::fputs(policy.error().message().c_str(), stderr), 125;
  const char* script = argc > 1 ? argv[1] : "import os; print('hello from uid', os.getuid())";
  auto result = caisson::run({.policy = *policy, .command = {"python3", "-c", script}});
  if (!result) return std::fputs(result.error().message().c_str(), stderr), 125;
  if (result->error) std::fputs(result->error->message().c_str(), stderr);
  std::fwrite(result->out.data.data(), 1, result->out.data.size(), stdout);
  std::fwrite(result->err.data.data(), 1, result->err.data.size(), stderr);
  return caisson::exitStatus(*result);
}
