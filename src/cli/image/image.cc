// `caisson image`: the tables of its verbs. The work is done by the program caisson-image; this file starts it.
#include "cli/companion.h"
#include "cli/image/verbs.h"

namespace caisson::cli {
namespace {

template <const Verb& verb>
int start(const Arguments& arguments) {
  return becomeCompanion("caisson-image", verb, arguments);
}

constexpr Option kImportOptions[] = {kImagePlatform, kImageReplace, kImageQuiet};
constexpr OptionGroup kImportGroups[] = {{"Import", kImportOptions}};
constexpr Option kListOptions[] = {kImageJson, kImageIdsOnly};
constexpr OptionGroup kListGroups[] = {{"Output", kListOptions}};
constexpr Option kVerifyOptions[] = {kImageJson};
constexpr OptionGroup kVerifyGroups[] = {{"Output", kVerifyOptions}};
constexpr Option kPruneOptions[] = {kImageAll};
constexpr OptionGroup kPruneGroups[] = {{"Prune", kPruneOptions}};
constexpr Option kSaveOptions[] = {kImageFormat, kImageQuiet};
constexpr OptionGroup kSaveGroups[] = {{"Save", kSaveOptions}};
constexpr Option kPullOptions[] = {kImagePlatform, kImageQuiet};
constexpr OptionGroup kPullGroups[] = {{"Pull", kPullOptions}};
constexpr Option kPushOptions[] = {kImageQuiet};
constexpr OptionGroup kPushGroups[] = {{"Push", kPushOptions}};

constexpr Option kBuildOptions[] = {kImageTagName, kImageFile,    kImageArgument, kImageTarget,
                                    kImageHost,    kImageNoCache, kImageRecipe,   kImageQuiet};
/// An alias, not in the help: elsewhere --force replaces a file.
constexpr Option kBuildAliases[] = {kImageForce};
constexpr OptionGroup kBuildGroups[] = {{"Build", kBuildOptions}, {"", kBuildAliases}};

constexpr const Verb* kImageVerbs[] = {&kImageBuild,   &kImageCommit, &kImagePull,   &kImagePush,
                                       &kImageImport,  &kImageSave,   &kImageTag,    &kImageList,
                                       &kImageInspect, &kImageVerify, &kImageRemove, &kImagePrune};

}  // namespace

std::span<const Verb* const> imageVerbs() { return kImageVerbs; }

constinit const Verb kImagePull{
    .path = "image pull",
    .summary = "Download an image from a registry",
    .description =
        "Downloads what is missing, checks every digest and unpacks the layers. Credentials come from "
        "~/.docker/config.json, containers' auth.json and credential helpers, as for docker and podman; certificates "
        "of "
        "a private registry from /etc/docker/certs.d/HOST:PORT. Mirrors and required signatures are set in the "
        "configuration (docs/images.md).",
    .examples =
        "caisson image pull debian:12  from Docker Hub\n"
        "caisson image pull ghcr.io/owner/app@sha256:...  exactly this manifest\n"
        "caisson image pull --platform linux/amd64 alpine  for another architecture",
    .topic = Topic::images,
    .syntax = {.groups = kPullGroups, .operands = "REF"},
    .perform = start<kImagePull>,
};

constinit const Verb kImagePush{
    .path = "image push",
    .summary = "Upload an image to a registry",
    .description = "Uploads the image under its own name, or under TARGET. Blobs that the registry has are skipped.",
    .examples = "caisson image push app:1 registry.example/team/app:1",
    .topic = Topic::images,
    .syntax = {.groups = kPushGroups, .operands = "REF [TARGET]"},
    .perform = start<kImagePush>,
};

constinit const Verb kImageImport{
    .path = "image import",
    .summary = "Load an image from a file or directory",
    .description =
        "PATH is an OCI layout (directory or tar), an archive of `docker save` or `podman save`, a root file system as "
        "a "
        "tarball (also gzip or zstd), or a directory with one. Archives are parsed inside a sandbox; devices, setuid "
        "bits and the like are removed and reported. Without NAME the image gets the names in the archive; one that "
        "the store has for another image is refused without --replace.",
    .examples =
        "caisson image import app.tar  an archive of `docker save`\n"
        "caisson image import rootfs.tar.gz debian:minbase  a root file system",
    .topic = Topic::images,
    .syntax = {.groups = kImportGroups, .operands = "PATH [NAME]"},
    .perform = start<kImageImport>,
};

constinit const Verb kImageSave{
    .path = "image save",
    .summary = "Save an image to a tar archive",
    .description = "Writes an archive that `docker load`, `podman load` and `caisson image import` read.",
    .examples = "caisson image save debian:12 debian.tar --format docker",
    .topic = Topic::images,
    .syntax = {.groups = kSaveGroups, .operands = "REF FILE"},
    .perform = start<kImageSave>,
};

constinit const Verb kImageTag{
    .path = "image tag",
    .summary = "Give an image another name",
    .topic = Topic::images,
    .syntax = {.operands = "REF NAME"},
    .perform = start<kImageTag>,
};

constinit const Verb kImageBuild{
    .path = "image build",
    .summary = "Build an image from a Containerfile",
    .description =
        "CONTEXT is the directory that COPY reads (default: the current one). Supported are FROM, RUN, COPY, ADD of "
        "local "
        "files, ENV, WORKDIR, USER, ARG, ENTRYPOINT, CMD, LABEL, EXPOSE, several stages and .dockerignore; anything "
        "else is "
        "an error. Each RUN is a command in a sandbox, without network unless --allow-host is given. The image has a "
        "list "
        "of its packages (SPDX). With SOURCE_DATE_EPOCH equal inputs give equal images.",
    .examples =
        "caisson image build -t app:1 .\n"
        "caisson image build -t app:1 --allow-host packages.example.com .  for RUN pip install\n"
        "caisson image build --recipe python -t python:local",
    .topic = Topic::images,
    .syntax = {.groups = kBuildGroups, .operands = "[CONTEXT]"},
    .perform = start<kImageBuild>,
};

constinit const Verb kImageCommit{
    .path = "image commit",
    .summary = "Make an image of a session's root",
    .description =
        "The session must have an image as its root and isolation.user = \"root\". The new image has what was "
        "changed outside the workspace as its uppermost layer.",
    .examples = "caisson image commit my-session app:2",
    .topic = Topic::images,
    .syntax = {.operands = "SESSION [NAME]"},
    .perform = start<kImageCommit>,
};

constinit const Verb kImageList{
    .path = "image list",
    .summary = "List images",
    .topic = Topic::images,
    .syntax = {.groups = kListGroups},
    .perform = start<kImageList>,
};

constinit const Verb kImageInspect{
    .path = "image inspect",
    .summary = "Print an image's configuration and layers as JSON",
    .topic = Topic::images,
    .syntax = {.operands = "REF..."},
    .perform = start<kImageInspect>,
};

constinit const Verb kImageVerify{
    .path = "image verify",
    .summary = "Check stored images against their digests",
    .description =
        "Hashes every blob and every unpacked file and compares them with the digests and with the record that was "
        "written when the layer was unpacked. Without REF: all images. Exits with 1 if something differs.",
    .topic = Topic::images,
    .syntax = {.groups = kVerifyGroups, .operands = "[REF]..."},
    .perform = start<kImageVerify>,
};

constinit const Verb kImageRemove{
    .path = "image remove",
    .summary = "Remove images",
    .description =
        "Removes the name, and the image's blobs and layers if no other image needs them. Layers that a "
        "sandbox uses stay until the next `caisson image prune`.",
    .topic = Topic::images,
    .syntax = {.operands = "REF..."},
    .perform = start<kImageRemove>,
};

constinit const Verb kImagePrune{
    .path = "image prune",
    .summary = "Remove images without a name and unused data",
    .topic = Topic::images,
    .syntax = {.groups = kPruneGroups},
    .perform = start<kImagePrune>,
};

constinit const Verb kImage{
    .path = "image",
    .summary = "Pull, build, import, list and remove images",
    .description =
        "Images are root file systems for sandboxes: `caisson run --image debian:12 -- CMD`. They are in a "
        "content-addressed store below CAISSON_HOME/images.",
    .examples =
        "caisson image pull debian:12\n"
        "caisson image list\n"
        "caisson image verify",
    .topic = Topic::images,
    .verbs = kImageVerbs,
};

}  // namespace caisson::cli
