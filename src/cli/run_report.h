// What verbs that run one command share: the options for its result, and saying how it ended.
#pragma once

#include <functional>

#include "caisson/run.h"
#include "cli/options.h"

namespace caisson::cli {

inline constexpr Option kResultJson{.name = "json",
                                    .help = "Capture the output and print one JSON object instead of it."};
inline constexpr Option kResultFile{
    .name = "result",
    .value = "FILE",
    .help = "Also write that JSON object to FILE, while the output goes its normal way."};
inline constexpr Option kQuiet{.name = "quiet", .letter = 'q', .help = "Print no notices after the run, only errors."};
inline constexpr Option kResultOptions[] = {kResultJson, kResultFile, kQuiet};

/// A request whose streams, terminal and signals are those of this process, as the options say.
Request requestOnThisTerminal(const Arguments& arguments, Policy policy);

/// Makes the request, runs it and reports as the options say. The exit status. `after` is called when it ran, and what
/// it returns is the exit status unless it is 0.
int runAndReport(const Arguments& arguments, Result<Request> (*make)(const Arguments&),
                 const std::function<int(const Request&, const RunResult&)>& after = {});

}  // namespace caisson::cli
