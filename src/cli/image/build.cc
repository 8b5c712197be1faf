// `caisson image build` and `commit`.
#include "image_store/build/build.h"

#include <unistd.h>

#include <chrono>

#include "cli/image/actions.h"
#include "cli/image/common.h"
#include "cli/image/verbs.h"
#include "cli/output.h"
#include "image/reference.h"
#include "image_store/import.h"
#include "sys/helper_process.h"
#include "sys/host_program.h"

namespace caisson::cli {
namespace {

using image::Store;

constexpr auto kRecipeTimeout = std::chrono::minutes(30);

/// The packages of a recipe, beyond a minimal Debian.
std::string packagesOf(std::string_view recipe) {
  const std::string base = "ca-certificates,curl,git,procps";
  if (recipe == "node") return base + ",nodejs,npm";
  if (recipe == "python") return base + ",python3,python3-pip,python3-venv";
  if (recipe == "rust") return base + ",cargo,rustc,gcc,libc6-dev,pkg-config";
  return base;
}

std::vector<std::string> namesOf(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const Given& given : arguments.given)
    if (given.option->name == kImageTagName.name) names.emplace_back(given.value);
  return names;
}

int printBuilt(const image::StoredName& stored, const std::vector<std::string>& names) {
  std::string out = "Digest: " + stored.manifest.text() + "\n";
  for (const std::string& name : names) out += "Built image: " + image::Reference::parse(name)->familiar() + "\n";
  return print(out);
}

/// Builds a Debian root with mmdebstrap, which runs on the host with its own sources, and imports it.
int buildRecipe(const Store& store, std::string_view recipe, image::BuildOptions& options, image::Progress& progress) {
  if (options.names.empty()) options.names.push_back("caisson/" + std::string(recipe));
  const std::string root = std::string(image::kBuildCache) + "recipe-" + std::string(recipe);
  const auto directory = sys::RootDir::open(store.path() + "/tmp");
  if (!directory) return printError(directory.error());
  const std::string file = "recipe-" + std::to_string(::getpid()) + ".tar";
  const std::string path = store.path() + "/tmp/" + file;
  const std::size_t step = progress.begin("mmdebstrap " + std::string(recipe), 0);
  auto program = sys::HostProgram::start(
      {.arguments = {"mmdebstrap", "--quiet", "--variant=minbase", "--include=" + packagesOf(recipe), "bookworm", path},
       .search_path = true,
       .inherit_environment = true,
       .descriptors = {{STDERR_FILENO, STDERR_FILENO}}});
  if (!program) {
    Error error = program.error();
    error.hint = "install the package mmdebstrap";
    return printError(error);
  }
  const auto status = program->wait(kRecipeTimeout);
  progress.end(step, status == 0 ? "done" : "failed");
  auto imported =
      status == 0
          ? image::importImage(
                store,
                {.path = path, .name = root, .quota = options.quota, .settings = options.settings, .for_build = true},
                progress)
          : fail(plainError(Stage::state, "build", recipe, "mmdebstrap failed"));
  (void)directory->remove(file);
  if (!imported) return printError(imported.error());
  options.text = "FROM " + root + "\nCMD [\"/bin/bash\"]\n";
  const auto built = image::buildImage(store, options, progress);
  return built ? printBuilt(*built, options.names) : printError(built.error());
}

}  // namespace

int buildAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 0, 1); !checked) return printError(checked.error());
  const auto owner = approval::loadOwner();
  if (!owner) return printError(owner.error());
  const auto quota = storeQuota();
  if (!quota) return printError(quota.error());
  image::BuildOptions options{.context = arguments.operands.empty() ? "." : std::string(arguments.operands[0]),
                              .file = std::string(arguments.value(kImageFile).value_or("")),
                              .names = namesOf(arguments),
                              .target = std::string(arguments.value(kImageTarget).value_or("")),
                              .no_cache = arguments.has(kImageNoCache) || arguments.has(kImageForce),
                              .quota = *quota,
                              .settings = owner->images,
                              .program = sys::kOwnProgram};
  for (const Given& given : arguments.given) {
    if (given.option->name == kImageHost.name) options.hosts.emplace_back(given.value);
    if (given.option->name != kImageArgument.name) continue;
    const std::size_t equals = given.value.find('=');
    if (equals == std::string_view::npos) return printError(usageError(given.value, "expected NAME=VALUE"));
    options.arguments[std::string(given.value.substr(0, equals))] = given.value.substr(equals + 1);
  }
  const auto store = Store::open();
  if (!store) return printError(store.error());
  image::Progress progress(arguments.has(kImageQuiet));
  if (const auto recipe = arguments.value(kImageRecipe)) return buildRecipe(*store, *recipe, options, progress);
  const auto built = image::buildImage(*store, options, progress);
  return built ? printBuilt(*built, options.names) : printError(built.error());
}

int commitAction(const Arguments& arguments) {
  if (auto checked = expectOperands(arguments, 1, 2); !checked) return printError(checked.error());
  const auto quota = storeQuota();
  if (!quota) return printError(quota.error());
  const auto store = Store::open();
  if (!store) return printError(store.error());
  std::vector<std::string> names;
  if (arguments.operands.size() == 2) names.emplace_back(arguments.operands[1]);
  image::Progress progress(true);
  const auto stored =
      image::commitSession(*store, std::string(arguments.operands[0]), names, *quota, sys::kOwnProgram, progress);
  return stored ? printBuilt(*stored, names) : printError(stored.error());
}

}  // namespace caisson::cli
