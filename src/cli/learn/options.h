// The options of `run` and `plan` that record what a program accesses.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "policy/model.h"

namespace caisson::cli {

inline constexpr Option kLearn{
    .name = "learn",
    .value = "FILE",
    .help =
        "Write to FILE, and show, the smallest policy that lets through what was refused. A file that --learn wrote "
        "before, or that --policy names, is extended. Nothing is widened by it; read it first."};
inline constexpr Option kTrace{
    .name = "trace",
    .value = "files",
    .help = "Show which files the program asked for and started, and which of them were not there. It runs slower."};

/// Whether these arguments request Request::learn, with --learn or --trace. Fails if the policy's level cannot provide
/// it.
Result<bool> wantsLearning(const Arguments& arguments, const policy::Policy& policy);

}  // namespace caisson::cli
