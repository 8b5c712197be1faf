// `caisson version`: what this program is, how it was built, and the licences of what it contains.
#include "cli/self/version.h"

#include "base/json_writer.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "sys/root_dir.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kLicenses{.name = "licenses", .help = "Print the licences of the software that the programs contain."};
constexpr Option kOptions[] = {kJson, kLicenses};
constexpr OptionGroup kGroups[] = {{"Output", kOptions}};

#if defined(__clang__)
constexpr std::string_view kCompiler = "Clang " __clang_version__;
#else
constexpr std::string_view kCompiler = "GCC " __VERSION__;
#endif

constexpr std::uint64_t kMaxNotice = 16U << 20;

std::string asText() {
  return versionLine() + "commit:   " + std::string(kCommit) + "\ncompiler: " + std::string(kCompiler) +
         "\nbuild:    " CAISSON_FLAVOUR ", " + (CAISSON_LINKED_STATICALLY ? "static" : "dynamic") +
         ", " CAISSON_PROCESSOR "\n";
}

std::string asJson() {
  JsonWriter json;
  json.beginObject().key("version").string(CAISSON_VERSION).key("commit").string(kCommit);
  json.key("compiler").string(kCompiler).key("flavour").string(CAISSON_FLAVOUR);
  json.key("static").boolean(CAISSON_LINKED_STATICALLY).key("architecture").string(CAISSON_PROCESSOR).end();
  return json.text() + "\n";
}

int printLicenses() {
  const std::string own = ownDirectory();
  for (const std::string& directory : {own + "/../share/doc/caisson", std::string(CAISSON_INSTALLED_DOCUMENTS)}) {
    const auto root = sys::RootDir::open(directory);
    if (!root) continue;
    if (const auto notice = root->readFile("NOTICE", kMaxNotice)) return print(*notice);
  }
  return printError(
      plainError(Stage::usage, "version", "NOTICE", "the licence texts are not installed with this program",
                 "they are in share/doc/caisson/NOTICE of every package, and `make install` writes them"));
}

int perform(const Arguments& arguments) {
  if (arguments.has(kLicenses)) return printLicenses();
  return print(arguments.has(kJson) ? asJson() : asText());
}

}  // namespace

std::string_view programVersion() { return CAISSON_VERSION; }
std::string versionLine() { return "caisson " CAISSON_VERSION "\n"; }

constinit const Verb kVersion{
    .path = "version",
    .summary = "Print the version, how it was built, and the licences of its parts",
    .description =
        "Prints the version, the commit, the compiler and the kind of build. `caisson --version` prints the first line "
        "only.",
    .examples = "caisson version --json\ncaisson version --licenses | less",
    .topic = Topic::machine,
    .syntax = {.groups = kGroups},
    .perform = perform,
};

}  // namespace caisson::cli
