// The `caisson-image` program: `caisson image` starts it with its own command line, argv[0] being the path of caisson.
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

constexpr Action kActions[] = {
    {&kImageBuild, buildAction},     {&kImageCommit, commitAction}, {&kImageImport, importAction},
    {&kImageInspect, inspectAction}, {&kImageList, listAction},     {&kImagePrune, pruneAction},
    {&kImagePull, pullAction},       {&kImagePush, pushAction},     {&kImageRemove, removeAction},
    {&kImageSave, saveAction},       {&kImageTag, tagAction},       {&kImageVerify, verifyAction}};

int performImage(std::span<char* const> line) {
  if (line.size() == 4 && line[1] == image::kDecoderArgument) return image::decoderMain(line[2], line[3]);
  for (const Action& action : kActions) {
    if (line.size() < 3 || line[1] != kImage.word() || line[2] != action.verb->word()) continue;
    const auto arguments = parse(action.verb->syntax, line.subspan(3));
    if (!arguments) return printError(arguments.error());
    ::signal(SIGPIPE, SIG_IGN);  // a registry may close a connection while we write
    ::umask(0022);               // directories that an archive implies get mode 0755, for everybody the same
    return action.perform(*arguments);
  }
  return printError(usageError("caisson-image", "start it with `caisson image`"));
}

}  // namespace
}  // namespace caisson::cli

int main(int count, char** words) { caisson::cli::programMain(count, words, caisson::cli::performImage); }
