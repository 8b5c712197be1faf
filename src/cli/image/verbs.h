// The verbs of `caisson image`. Their tables are in caisson, for help and completions; their functions are in the
// program caisson-image, which parses the same tables again.
#pragma once

#include <span>

#include "cli/verb.h"

namespace caisson::cli {

inline constexpr Option kImageJson{.name = "json", .help = "Print JSON."};
inline constexpr Option kImageQuiet{
    .name = "quiet", .letter = 'q', .help = "Print no progress; in lists, only image ids."};
inline constexpr Option kImagePlatform{.name = "platform",
                                       .value = "OS/ARCH",
                                       .help = "Of a multi-platform image, take this one (default: this machine's)."};
inline constexpr Option kImageFormat{
    .name = "format", .value = "oci|docker", .help = "Format of the archive (default: oci)."};
inline constexpr Option kImageAll{
    .name = "all", .letter = 'a', .help = "Remove all images that no sandbox uses, not only those without a name."};

extern const Verb kImageImport, kImageInspect, kImageList, kImagePrune, kImagePull, kImagePush, kImageRemove,
    kImageSave, kImageTag, kImageVerify;

/// All verbs of `caisson image`.
std::span<const Verb* const> imageVerbs();

}  // namespace caisson::cli
