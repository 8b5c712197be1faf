// `caisson self`: this installation. Here: the group, and the start of `verify`, which caisson-mcp carries out since it
// contains a cryptographic library.
#include "cli/companion.h"
#include "cli/self/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOptions[] = {kSelfKey, kSelfJson};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

int verify(const Arguments& arguments) { return becomeCompanion("caisson-mcp", kSelfVerify, arguments); }

}  // namespace

constinit const Verb kSelfVerify{
    .path = "self verify",
    .summary = "Check the files of this installation against its signed manifest",
    .description =
        "Compares every file with the SHA-256 sums in share/caisson/MANIFEST, and checks the signature of the manifest "
        "with a public key: the one of --key, else /etc/caisson/release.pub and ~/.config/caisson/release.pub. Without "
        "a key the signature is not checked, and the result shows damage, not tampering: an attacker who replaced "
        "files could have replaced the manifest.\n\n"
        "Exit status: 0 all files match; 1 a file is changed, missing or unreadable, a program was added, or the "
        "signature is missing or not valid; 125 the files could not be checked, for example without a manifest.",
    .examples =
        "caisson self verify\n"
        "caisson self verify --key ~/caisson-signing.pub    the key that you got from the publisher",
    .topic = Topic::machine,
    .syntax = {.groups = kGroups},
    .perform = verify,
};

namespace {
constexpr const Verb* kBelow[] = {&kSelfVerify};
}

constinit const Verb kSelf{
    .path = "self",
    .summary = "Check this installation",
    .topic = Topic::machine,
    .verbs = kBelow,
};

}  // namespace caisson::cli
