// Reads a stranger's file in a separate process: a crash or an endless loop of a parser ends that process alone, and it
// can do nothing but compute and answer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "plan/syscall_filter.h"

namespace caisson::cli {

/// The system calls of the process. `self`: it may signal itself only.
plan::SyscallFilter readerFilter(std::uint32_t self, Architecture architecture = kNative);

/// The result of `read`, which runs in a child process without files, network and other processes, with 1 GiB of memory
/// and 10 s of CPU time. An error about `object` if the child ends without a result. For processes with one thread.
Result<std::string> readConfined(const std::string& object, const std::function<Result<std::string>()>& read);

}  // namespace caisson::cli
