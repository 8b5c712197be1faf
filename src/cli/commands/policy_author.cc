#include "cli/commands/policy_author.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "cli/output.h"
#include "policy/describe/reference.h"
#include "sys/fd.h"

namespace caisson::cli {
namespace {

constexpr Option kForce{.name = "force", .help = "Replace a file that exists."};
constexpr Option kInitOptions[] = {kForce};
constexpr OptionGroup kInitGroups[] = {{"Options", kInitOptions}};
constexpr Option kMarkdown{.name = "markdown", .help = "Print tables in Markdown, as in docs/policy-reference.md."};
constexpr Option kReferenceOptions[] = {kMarkdown};
constexpr OptionGroup kReferenceGroups[] = {{"Options", kReferenceOptions}};

/// Every line behind `# ` is a valid setting. A test removes the marks and checks the file again.
constexpr std::string_view kTemplate =
    R"(# A caisson policy. `caisson run --policy caisson.toml -- CMD` uses it; `caisson policy trust` makes
# it the default in this directory. `caisson policy reference` describes every key.
# Lines that begin with "# " and hold a key are examples: remove the mark to use them.
format_version = 1
extends = "dev"

[filesystem]
# max_file_size = "1G"
# tmpfs."/home/sandbox".size = "256M"
# read_only = ["/opt/toolchain"]
# denied = ["/workspace/private"]
# workspace.mode = "overlay"

[network]
# mode = "proxy"
# allowed_hosts = ["api.example.org", "*.example.com:8443", "preset:npm"]

[resources]
# memory = "512M"
# cpus = 1
# wall_seconds = "10m"

[process]
# max_processes = 200

[environment]
# set = { CI = "1" }
# pass = ["LANG"]
)";

Result<void> writeNewFile(const std::string& path, bool replace) {
  const sys::Fd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (replace ? O_TRUNC : O_EXCL), 0666));
  if (!file && errno == EEXIST) {
    return fail(usageError(path, "the file exists", "name another file, or replace it with --force"));
  }
  if (!file) return fail(sysError(Stage::usage, "open", path, errno));
  if (const int error = writeAll(file.get(), kTemplate); error != 0) {
    return fail(sysError(Stage::usage, "write", path, error));
  }
  return {};
}

int performInit(const Arguments& arguments) {
  if (arguments.operands.size() > 1) {
    return printError(usageError("policy init", "expected one file", "caisson policy init caisson.toml"));
  }
  const std::string path(arguments.operands.empty() ? "caisson.toml" : arguments.operands[0]);
  if (path == "-") return print(kTemplate);
  if (auto written = writeNewFile(path, arguments.has(kForce)); !written) return printError(written.error());
  printNotice("wrote " + path + "; `caisson policy check " + path + "` checks it");
  return 0;
}

int performReference(const Arguments& arguments) { return print(policy::renderReference(arguments.has(kMarkdown))); }

}  // namespace

constinit const Verb kPolicyInit{
    .path = "policy init",
    .summary = "Write a policy file to start from",
    .description =
        "Writes caisson.toml, or FILE, with comments that show the settings people change most. `-` prints it.",
    .examples = "caisson policy init\ncaisson policy init strict-ci.toml",
    .topic = Topic::policy,
    .syntax = {.groups = kInitGroups, .operands = "[FILE]"},
    .perform = performInit,
};

constinit const Verb kPolicyReference{
    .path = "policy reference",
    .summary = "Describe every key of a policy",
    .description = "Type, default (profile bash), ceiling and meaning of each key.",
    .examples = "caisson policy reference | less",
    .topic = Topic::policy,
    .syntax = {.groups = kReferenceGroups},
    .perform = performReference,
};

}  // namespace caisson::cli
