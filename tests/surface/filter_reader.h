// The seccomp filters of a process, as the kernel gives them to a tracer, and what they let through.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace caisson::surface {

using Program = std::vector<sock_filter>;

/// Needs root outside every container. Nothing: they can't be read; empty: there is none.
std::optional<std::vector<Program>> readFilters(pid_t pid);

/// Whether some arguments of a call pass all filters.
bool letsThrough(const std::vector<Program>& filters, int number);

/// How many of the calls that have a name pass with some arguments.
std::size_t countCalls(const std::vector<Program>& filters);

/// How many values of the second argument of ioctl pass; nothing: nearly all do.
std::optional<std::size_t> countRequests(const std::vector<Program>& filters);

}  // namespace caisson::surface
