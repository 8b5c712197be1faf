// The hostile payload: `payload VERB [ARGUMENT]...` makes one attempt and reports the result.
//
//   exit 0, "done[: detail]"            the forbidden action SUCCEEDED
//   exit 1, "refused: CALL: ERRNO"      the kernel or the sandbox denied it
//   exit 2, "usage: ..."                wrong arguments
//   exit 3, "unavailable: ..."          this machine lacks what the attempt needs; proves nothing
//
// Prints exactly one line on standard output, unless a verb documents more. No verb can harm a host on which it
// succeeds: arguments are chosen to fail or to change nothing, and files are named by the caller.
#pragma once

#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace payload {

inline constexpr int kDone = 0;
inline constexpr int kRefused = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnavailable = 3;

using Arguments = std::vector<std::string>;

struct Verb {
  std::string_view name;
  std::string_view arguments;  ///< for the usage line
  std::size_t needed;          ///< minimum number of arguments
  int (*attempt)(const Arguments& arguments);
};

int done(std::string_view detail = "");
int refused(std::string_view call, int error = errno);
int unavailable(std::string_view why);
/// done() for a result of at least 0, else refused().
int report(std::string_view call, long result);
/// "EPERM", or the number if it has no name.
std::string errorName(int error);

/// The content of a file, or an empty string with errno set.
std::string contentOf(const std::string& path);

void pauseFor(long milliseconds);
/// Pid 1 drops its rights just after the payload has started; until then the kernel protects it from processes with
/// fewer rights. Attacks on it wait for that, so that they test the sandbox and not the timing.
void waitForInitToSettle();

/// Runs a verb in this process. Used by main() and by verbs that prepare for another one.
int perform(const Arguments& verb_and_arguments);

// One table per file.
std::span<const Verb> namespaceVerbs();
std::span<const Verb> mountVerbs();
std::span<const Verb> processVerbs();
std::span<const Verb> kernelVerbs();
std::span<const Verb> socketVerbs();
std::span<const Verb> fileVerbs();
std::span<const Verb> plantingVerbs();
std::span<const Verb> descriptorVerbs();
std::span<const Verb> identityVerbs();
std::span<const Verb> terminalVerbs();
std::span<const Verb> abuseMemoryVerbs();
std::span<const Verb> abuseObjectVerbs();
std::span<const Verb> abuseDiskVerbs();
std::span<const Verb> executionVerbs();
std::span<const Verb> violationVerbs();
std::span<const Verb> siblingVerbs();

}  // namespace payload
