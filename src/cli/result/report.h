// Shared by verbs that run one command: the options for its result, and the report of how it ended.
#pragma once

#include <functional>

#include "caisson/run.h"
#include "cli/options.h"

namespace caisson::cli {

inline constexpr Option kResultJson{.name = "json",
                                    .help = "Capture the output and print one JSON object instead of it."};
inline constexpr Option kResultFile{
    .name = "result", .value = "FILE", .help = "Write the result as JSON to FILE; output is not affected."};
inline constexpr Option kQuiet{.name = "quiet", .letter = 'q', .help = "Print no notices after the run, only errors."};
inline constexpr Option kNoInput{
    .name = "no-stdin", .letter = 'n', .help = "Give it an empty standard input and leave the caller's unread."};
inline constexpr Option kResultOptions[] = {kResultJson, kResultFile, kQuiet, kNoInput};

/// `status`, or 125 where the program succeeded but output that went through caisson was lost.
int statusWithOutput(int status, const RunResult& result);

/// Creates a request that uses this process's streams, terminal and signals, according to the options.
Request requestOnThisTerminal(const Arguments& arguments, Policy policy);

/// Creates the request, runs it and reports as the options request. Returns the exit status. `after` is called after
/// the run, unless it was refused; if it returns nonzero, that is the exit status.
int runAndReport(const Arguments& arguments, const std::function<Result<Request>(const Arguments&)>& make,
                 const std::function<int(const Request&, const RunResult&)>& after = {});

}  // namespace caisson::cli
