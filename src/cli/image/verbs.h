// The verbs of `caisson image`. Their tables are in caisson, for help and completions; their functions are in the
// program caisson-image, which parses the same tables again.
#pragma once

#include <span>

#include "cli/verb.h"

namespace caisson::cli {

inline constexpr Option kImageJson{.name = "json", .help = "Print JSON."};
inline constexpr Option kImageQuiet{.name = "quiet", .letter = 'q', .help = "Print no progress."};
inline constexpr Option kImageReplace{.name = "replace",
                                      .help = "Let names from the archive replace those of other images in the store."};
inline constexpr Option kImageIdsOnly{.name = "quiet", .letter = 'q', .help = "Print only image ids."};
inline constexpr Option kImagePlatform{.name = "platform",
                                       .value = "OS/ARCH",
                                       .help = "Of a multi-platform image, take this one (default: this machine's)."};
inline constexpr Option kImageFormat{
    .name = "format", .value = "oci|docker", .help = "Format of the archive (default: oci)."};
inline constexpr Option kImageAll{
    .name = "all", .letter = 'a', .help = "Remove all images that no sandbox uses, not only those without a name."};

inline constexpr Option kImageTagName{
    .name = "tag", .letter = 't', .value = "NAME", .help = "Name of the image.", .repeatable = true};
inline constexpr Option kImageFile{.name = "file",
                                   .letter = 'f',
                                   .value = "FILE",
                                   .help = "The Containerfile (default: Containerfile or Dockerfile of the context)."};
inline constexpr Option kImageArgument{
    .name = "build-arg", .value = "NAME=VALUE", .help = "Value of an ARG.", .repeatable = true};
inline constexpr Option kImageTarget{.name = "target", .value = "STAGE", .help = "Stop after this stage."};
inline constexpr Option kImageNoCache{.name = "no-cache", .help = "Run every RUN again."};
inline constexpr Option kImageForce{.name = "force", .help = "The same as --no-cache."};
inline constexpr Option kImageHost{.name = "allow-host",
                                   .value = "PATTERN",
                                   .help = "A host that RUN may reach, through the proxy.",
                                   .repeatable = true};
inline constexpr Option kImageRecipe{
    .name = "recipe",
    .value = "base|node|python|rust",
    .help = "Instead of a Containerfile: a Debian root with these tools, by mmdebstrap."};

extern const Verb kImageBuild, kImageCommit, kImageImport, kImageInspect, kImageList, kImagePrune, kImagePull,
    kImagePush, kImageRemove, kImageSave, kImageTag, kImageVerify;

/// All verbs of `caisson image`.
std::span<const Verb* const> imageVerbs();

}  // namespace caisson::cli
