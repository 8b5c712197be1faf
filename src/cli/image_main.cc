// The `caisson-image` program: `caisson image VERB` starts it as `caisson VERB [OPTION]... -- OPERAND...`.
// A separate program, since libarchive, libcurl and OpenSSL cost more than the whole launcher, and no launch needs
// them.
#include <sys/stat.h>

#include <csignal>

#include "cli/image/actions.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "cli/program_main.h"
#include "image_store/decoder.h"

namespace caisson::cli {
namespace {

struct Action {
  const Verb* verb;
  int (*perform)(const Arguments& arguments);
};

constexpr Action kActions[] = {{&kImageImport, importAction}, {&kImageInspect, inspectAction},
                               {&kImageList, listAction},     {&kImagePrune, pruneAction},
                               {&kImagePull, pullAction},     {&kImagePush, pushAction},
                               {&kImageRemove, removeAction}, {&kImageSave, saveAction},
                               {&kImageTag, tagAction},       {&kImageVerify, verifyAction}};

/// The launcher puts all operands after `--`, so that none of them is taken for an option.
int performImage(std::span<char* const> line) {
  if (line.size() == 4 && line[1] == image::kDecoderArgument) return image::decoderMain(line[2], line[3]);
  for (const Action& action : kActions) {
    if (line.size() < 2 || line[1] != action.verb->word()) continue;
    Syntax syntax = action.verb->syntax;
    syntax.operands = {};
    syntax.command = "OPERAND...";
    auto arguments = parse(syntax, line.subspan(2));
    if (!arguments) return complain(arguments.error());
    for (char* operand : arguments->command) arguments->operands.emplace_back(operand);
    ::signal(SIGPIPE, SIG_IGN);  // a registry may close a connection while we write
    ::umask(0022);               // directories that an archive implies get mode 0755, for everybody the same
    return action.perform(*arguments);
  }
  return complain(usageError("caisson-image", "start it with `caisson image`"));
}

}  // namespace
}  // namespace caisson::cli

int main(int count, char** words) { caisson::cli::programMain(count, words, caisson::cli::performImage); }
