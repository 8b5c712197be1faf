// The hostile helper: `payload VERB [ARGUMENT]...` attempts one thing and says how it went.
//
//   exit 0, "done[: detail]"            the forbidden thing SUCCEEDED
//   exit 1, "refused: CALL: ERRNO"      the kernel or the sandbox said no
//   exit 2, "usage: ..."                the verb was called wrongly
//   exit 3, "unavailable: ..."          what the attempt needs is not on this machine; nothing is proven
//
// Exactly one line on standard output, unless a verb says that it prints more. No verb can harm a host on which it
// succeeds: arguments are chosen to be refused or to change nothing, and files are those that the caller names.
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
  std::string_view arguments;  ///< as the usage line shows them
  std::size_t needed;          ///< how many arguments it takes at least
  int (*attempt)(const Arguments& arguments);
};

int done(std::string_view detail = "");
int refused(std::string_view call, int error = errno);
int unavailable(std::string_view why);
/// done() for a result of at least 0, else refused().
int report(std::string_view call, long result);
/// "EPERM"; the number where it has no name.
std::string errorName(int error);

/// All of a file, or an empty string with errno set.
std::string contentOf(const std::string& path);

/// Sleeps.
void pauseFor(long milliseconds);
/// Pid 1 gives up its own rights just after the payload has started, and until then the kernel protects it from those
/// with fewer. Attacks on it wait that out, so that what is measured is the sandbox and not the moment.
void waitForInitToSettle();

/// Runs a verb in this process. Used by main() and by verbs that prepare the ground for another.
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
