#include "image_store/build/build.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>

#include "approval/image_signatures.h"
#include "base/json_value.h"
#include "base/text.h"
#include "image/reference.h"
#include "image_store/build/copy.h"
#include "image_store/build/draft.h"
#include "image_store/build/sandbox_step.h"
#include "image_store/build/sbom.h"
#include "image_store/pull.h"
#include "image_store/signature.h"
#include "image_store/unpack_layer.h"

namespace caisson::image {
namespace {

constexpr std::uint64_t kMaxContainerfile = 1U << 20;
constexpr std::string_view kBillPath = "usr/share/sbom/image.spdx.json";

Error buildError(const Instruction& instruction, std::string_view reason, std::string_view hint = {}) {
  return plainError(Stage::usage, "build",
                    "Containerfile:" + std::to_string(instruction.line) + ": " + instruction.name, reason, hint);
}

struct BuildStage {
  std::string name;
  ImageDraft draft;
};

/// The image that the entry of the index names, as a draft.
Result<ImageDraft> draftOf(const Store& store, const StoredName& stored) {
  const auto text = readBlob(store.root(), stored.manifest);
  const auto manifest = text ? parseManifest(*text) : fail(text.error());
  if (!manifest) return fail(manifest.error());
  const auto config = readBlob(store.root(), manifest->config.digest);
  return config ? ImageDraft::from(*manifest, *config) : fail(config.error());
}

Result<MergedView> viewOf(const Store& store, const ImageDraft& draft) {
  std::vector<std::string> layers;
  for (const Descriptor& layer : draft.layers())
    layers.push_back(store.path() + "/" + layerPath(layer.digest) + std::string(kLayerRoot));
  return MergedView::open(layers);
}

/// Adds a layer that `fill` writes to the draft, and stores the image under `names`; nothing: as an intermediate image.
Result<StoredName> addLayer(const Store& store, ImageDraft& draft, std::uint64_t quota, std::string_view created_by,
                            const std::optional<std::vector<std::string>>& names, Progress& progress,
                            const std::function<Result<void>(LayerArchive&)>& fill) {
  auto transaction = Transaction::begin(store, quota);
  if (!transaction) return fail(transaction.error());
  auto archive = LayerArchive::begin(*transaction);
  if (!archive) return fail(archive.error());
  if (auto filled = fill(**archive); !filled) return fail(filled.error());
  if (!(*archive)->empty()) {
    if (draft.layers().size() >= kMaxLayers) {
      return fail(plainError(Stage::usage, "build", created_by, "the image would have more than 256 layers",
                             "join RUN and COPY lines, or use a base image with fewer layers"));
    }
    const auto digest = (*archive)->finish();
    if (!digest) return fail(digest.error());
    const auto file = transaction->openBlob(*digest);
    if (!file) return fail(file.error());
    const auto size = static_cast<std::uint64_t>(::lseek(file->get(), 0, SEEK_END));
    UnpackReport report;
    const auto diff_id = unpackLayer(*transaction, *digest, *digest, report, progress);
    if (!diff_id) return fail(diff_id.error());
    draft.addLayer({.media_type = std::string(kOciLayer), .digest = *digest, .size = size}, *diff_id, created_by);
  }
  auto stored = draft.store(*transaction);
  if (!stored) return stored;
  std::vector<StoredName> entries;
  for (const std::string& name : names.value_or(std::vector{std::string(kBuildCache) + draft.identity()})) {
    stored->name = name;
    entries.push_back(*stored);
  }
  if (entries.empty()) entries.push_back(*stored);
  if (auto committed = transaction->commit(entries); !committed) return fail(committed.error());
  return stored;
}

/// A hash of a step. With the length of each part: a command whose text contains what follows it must not get the
/// result of another one.
std::string stepIdentity(const ImageDraft& draft, const SandboxStep& step) {
  std::string key;
  const auto add = [&key](std::string_view part) { key.append(std::to_string(part.size())).append(":").append(part); };
  add(draft.identity());
  add(std::to_string(step.command.size()));
  for (const std::string& word : step.command) add(word);
  for (const auto& [name, value] : step.environment) {
    add(name);
    add(value);
  }
  return ContentDigest::of(key).hex();
}

class Builder {
 public:
  Builder(const Store& store, const BuildOptions& options, const sys::RootDir& context, Progress& progress)
      : store_(store), options_(options), context_(context), progress_(progress) {}

  Result<void> perform(const Instruction& instruction) {
    if (instruction.name == "FROM") return from(instruction);
    if (instruction.name == "ARG") return argument(instruction);
    if (instruction.name == "RUN") return run(instruction);
    if (instruction.name == "COPY" || instruction.name == "ADD") return copy(instruction);
    if (instruction.name == "WORKDIR") return directory(instruction);
    ImageDraft& draft = stages_.back().draft;
    if (instruction.name == "CMD") draft.setList("Cmd", commandOf(instruction));
    if (instruction.name == "ENTRYPOINT") draft.setList("Entrypoint", commandOf(instruction));
    if (instruction.name == "USER") {
      const auto user = expand(instruction, instruction.text);
      if (!user) return fail(user.error());
      draft.setText("User", *user);
    }
    if (instruction.name == "EXPOSE") {
      for (const std::string& word : instruction.words) {
        const auto port = expand(instruction, word);
        if (!port) return fail(port.error());
        draft.exposePort(port->find('/') == std::string::npos ? *port + "/tcp" : *port);
      }
    }
    if (instruction.name != "ENV" && instruction.name != "LABEL") return {};
    const auto pairs = keyValues(instruction, variables(), room_);
    if (!pairs) return fail(pairs.error());
    for (const auto& [key, value] : *pairs)
      instruction.name == "ENV" ? draft.setEnv(key, value) : draft.setLabel(key, value);
    return {};
  }

  /// Whether the stage that was asked for is complete, now that `next` begins another one.
  [[nodiscard]] bool reachedTarget(const Instruction& next) const {
    return next.name == "FROM" && !stages_.empty() && !options_.target.empty() &&
           stages_.back().name == options_.target;
  }

  /// Adds the list of packages and stores the result under its names.
  Result<StoredName> finish(const std::vector<std::string>& names) {
    if (!options_.target.empty() && stages_.back().name != options_.target) {
      return fail(plainError(Stage::usage, "build", options_.target, "no such stage"));
    }
    ImageDraft& draft = stages_.back().draft;
    const auto view = viewOf(store_, draft);
    if (!view) return fail(view.error());
    const std::string bill = softwareBill(*view, draft.identity(), buildTime());
    const auto target = view->resolve(std::string(kBillPath));
    if (!target) return fail(plainError(Stage::state, "build", kBillPath, "a loop of links"));
    return addLayer(store_, draft, options_.quota, "SBOM", names, progress_,
                    [&](LayerArchive& archive) -> Result<void> {
                      if (auto made = makeParents(archive, *view, *target); !made) return made;
                      return archive.text(*target, 0644, bill);
                    });
  }

 private:
  /// ARG values are hidden by ENV of the same name.
  [[nodiscard]] Variables variables() const {
    Variables all = stages_.empty() ? globals_ : arguments_;
    if (stages_.empty()) return all;
    for (const auto& [key, value] : stages_.back().draft.environment()) all[key] = value;
    return all;
  }

  /// The text with its variables replaced: those of the file before the first FROM, or all of the stage.
  Result<std::string> expand(const Instruction& instruction, std::string_view text) {
    return expand(instruction, text, variables());
  }
  Result<std::string> expand(const Instruction& instruction, std::string_view text, const Variables& variables) {
    auto value = substitute(text, variables, room_);
    return value ? Result<std::string>(std::move(*value)) : fail(buildError(instruction, kTooMuchText));
  }

  static std::vector<std::string> commandOf(const Instruction& instruction) {
    return instruction.json ? instruction.words : std::vector<std::string>{"/bin/sh", "-c", instruction.text};
  }

  static Result<void> makeParents(LayerArchive& archive, const MergedView& view, const std::string& path) {
    for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      const auto known = view.find(path.substr(0, end));
      if (auto added = archive.directory(path.substr(0, end), known ? known->info.mode : 0755U, 0); !added)
        return added;
    }
    return {};
  }

  Result<void> argument(const Instruction& instruction) {
    const std::string name = instruction.words.front().substr(0, instruction.words.front().find('='));
    Variables& place = stages_.empty() ? globals_ : arguments_;
    if (const auto given = options_.arguments.find(name); given != options_.arguments.end()) {
      place[name] = given->second;
    } else if (instruction.words.front().find('=') != std::string::npos) {
      auto value = expand(instruction, instruction.words.front().substr(name.size() + 1));
      if (!value) return fail(value.error());
      place[name] = std::move(*value);
    } else if (const auto global = globals_.find(name); global != globals_.end()) {
      place[name] = global->second;
    }
    return {};
  }

  /// An error if the image was stored before the owner required signatures for its name.
  Result<ImageDraft> signedDraft(const StoredName& image) {
    if (!image.name.empty() && !image.name.starts_with(kBuildCache)) {
      const auto name = Reference::parse(image.name);
      if (!name) return fail(name.error());
      auto allowed = approval::requireSignedBy(name->name(), name->familiar(), image.signed_by, options_.settings);
      if (!allowed) return fail(allowed.error());
    }
    return draftOf(store_, image);
  }

  Result<ImageDraft> base(const std::string& reference) {
    if (reference == "scratch") return ImageDraft::scratch(hostPlatform());
    for (const BuildStage& stage : stages_)
      if (!stage.name.empty() && stage.name == reference) return stage.draft;
    for (const bool pulled : {false, true}) {
      const auto names = store_.names();
      if (!names) return fail(names.error());
      if (const auto found = findImage(store_.root(), *names, reference)) return signedDraft(*found);
      if (pulled) break;
      const auto parsed = Reference::parse(reference);
      if (!parsed) return fail(parsed.error());
      const auto got =
          pullImage(store_, {.reference = *parsed, .quota = options_.quota, .settings = options_.settings}, progress_);
      if (!got) return fail(got.error());
    }
    return fail(plainError(Stage::state, "build", reference, "no such image"));
  }

  Result<void> from(const Instruction& instruction) {
    if (!instruction.flags.empty()) return fail(buildError(instruction, "flags are not supported"));
    const auto& words = instruction.words;
    const bool named = words.size() == 3 && lowered(words[1]) == "as";
    if (words.size() != 1 && !named) return fail(buildError(instruction, "expected FROM IMAGE [AS NAME]"));
    const auto name = expand(instruction, words[0], globals_);
    auto draft = name ? base(*name) : fail(name.error());
    if (!draft) return fail(draft.error());
    arguments_.clear();
    stages_.push_back({named ? lowered(words[2]) : std::to_string(stages_.size()), std::move(*draft)});
    return {};
  }

  /// Stores the image so far, so that a sandbox can use it; returns its reference.
  Result<std::string> materialize() {
    ImageDraft& draft = stages_.back().draft;
    if (draft.layers().empty())
      return fail(plainError(Stage::usage, "build", "RUN", "the image is empty, so it has no program to run"));
    const std::string name = std::string(kBuildCache) + draft.identity();
    const auto stored = addLayer(store_, draft, options_.quota, "", std::nullopt, progress_,
                                 [](LayerArchive&) { return Result<void>{}; });
    if (!stored) return fail(stored.error());
    return name + "@" + stored->manifest.text();
  }

  Result<void> run(const Instruction& instruction) {
    if (!instruction.flags.empty()) return fail(buildError(instruction, "flags such as --mount are not supported"));
    ImageDraft& draft = stages_.back().draft;
    SandboxStep step{.command = commandOf(instruction),
                     .environment = variables(),
                     .directory = draft.text("WorkingDir"),
                     .hosts = options_.hosts,
                     .program = options_.program};
    const std::string cached = std::string(kBuildCache) + stepIdentity(draft, step);
    const auto names = store_.names();
    if (!names) return fail(names.error());
    const auto found = std::ranges::find(*names, cached, &StoredName::name);
    if (found != names->end() && !options_.no_cache) {
      progress_.end(progress_.begin("RUN " + printable(instruction.text, 60), 0), "cached");
      auto reused = draftOf(store_, *found);
      if (!reused) return fail(reused.error());
      draft = std::move(*reused);
      return {};
    }
    const auto root = materialize();
    if (!root) return fail(root.error());
    step.root = *root;
    progress_.end(progress_.begin("RUN " + printable(instruction.text, 60), 0), "running");
    return runStep(step, [&](const sys::RootDir& upper) -> Result<void> {
      const auto stored = addLayer(store_, draft, options_.quota, "RUN " + instruction.text, std::vector{cached},
                                   progress_, [&](LayerArchive& archive) { return archive.upperDirectory(upper); });
      return stored ? Result<void>{} : fail(stored.error());
    });
  }

  Result<CopyRequest> copyRequest(const Instruction& instruction) {
    CopyRequest request;
    for (const std::string& word : instruction.words) {
      auto path = expand(instruction, word);
      if (!path) return fail(path.error());
      request.sources.push_back(std::move(*path));
    }
    if (request.sources.size() < 2) return fail(buildError(instruction, "expected a source and a target"));
    request.target = request.sources.back();
    request.sources.pop_back();
    const std::string directory = stages_.back().draft.text("WorkingDir");
    if (!request.target.starts_with('/')) request.target = directory + "/" + request.target;
    for (const std::string& source : request.sources) {
      if (instruction.name == "ADD" && source.find("://") != std::string::npos)
        return fail(buildError(instruction, "addresses are not supported",
                               "RUN curl with --allow-host, or download it before"));
      if (instruction.name == "ADD" &&
          (source.ends_with(".tar") || source.find(".tar.") != std::string::npos || source.ends_with(".tgz"))) {
        return fail(buildError(instruction, "archives are not extracted", "COPY it and RUN tar"));
      }
    }
    for (const auto& [flag, value] : instruction.flags) {
      std::uint32_t mode = 0;
      const bool octal = flag == "chmod" && std::from_chars(value.data(), value.data() + value.size(), mode, 8).ptr ==
                                                value.data() + value.size();
      if (octal && mode <= 0777) request.mode = mode;
      // All files of an image belong to one user here.
      if (!octal && flag != "from" && flag != "chown" && flag != "link")
        return fail(buildError(instruction, "unsupported flag --" + printable(flag, 40)));
    }
    return request;
  }

  Result<void> copy(const Instruction& instruction) {
    const auto request = copyRequest(instruction);
    if (!request) return fail(request.error());
    ImageDraft& draft = stages_.back().draft;
    const auto image = viewOf(store_, draft);
    if (!image) return fail(image.error());
    const auto origin = instruction.flags.find("from");
    std::optional<MergedView> other;
    if (origin != instruction.flags.end()) {
      const auto name = expand(instruction, origin->second, globals_);
      const auto from_draft = name ? base(lowered(*name)) : fail(name.error());
      if (!from_draft) return fail(from_draft.error());
      auto view = viewOf(store_, *from_draft);
      if (!view) return fail(view.error());
      other.emplace(std::move(*view));
    }
    const CopySource source = other ? viewSource(*other) : contextSource(context_, ignoreLines());
    const auto stored =
        addLayer(store_, draft, options_.quota, instruction.name + " " + instruction.text, std::nullopt, progress_,
                 [&](LayerArchive& archive) { return copyInto(archive, *image, source, *request); });
    return stored ? Result<void>{} : fail(stored.error());
  }

  [[nodiscard]] std::vector<std::string> ignoreLines() const {
    std::vector<std::string> lines;
    for (const char* name : {".containerignore", ".dockerignore"}) {
      const auto text = context_.readFile(name, kMaxContainerfile);
      if (!text) continue;
      for (const std::string_view line : split(*text, '\n')) lines.emplace_back(line);
      break;
    }
    return lines;
  }

  Result<void> directory(const Instruction& instruction) {
    ImageDraft& draft = stages_.back().draft;
    const auto wanted = expand(instruction, instruction.text);
    if (!wanted) return fail(wanted.error());
    const std::string path =
        std::filesystem::path(wanted->starts_with('/') ? *wanted : draft.text("WorkingDir") + "/" + *wanted)
            .lexically_normal()
            .string();
    draft.setText("WorkingDir", path.starts_with('/') ? path : "/" + path);
    const auto view = viewOf(store_, draft);
    if (!view) return fail(view.error());
    const auto real = view->resolve(path);
    if (!real || real->empty() || view->find(*real)) return {};
    const auto stored = addLayer(store_, draft, options_.quota, "WORKDIR " + *wanted, std::nullopt, progress_,
                                 [&](LayerArchive& archive) { return makeParents(archive, *view, *real + "/"); });
    return stored ? Result<void>{} : fail(stored.error());
  }

  const Store& store_;
  const BuildOptions& options_;
  const sys::RootDir& context_;
  Progress& progress_;
  std::vector<BuildStage> stages_;
  Variables globals_, arguments_;
  ExpansionRoom room_;
};

Result<std::string> readContainerfile(const BuildOptions& options, const sys::RootDir& context) {
  if (!options.text.empty()) return options.text;
  if (!options.file.empty()) {
    const std::filesystem::path path(options.file);
    const auto directory = sys::RootDir::open(path.parent_path().empty() ? "." : path.parent_path().string());
    return directory ? directory->readFile(path.filename().string(), kMaxContainerfile) : fail(directory.error());
  }
  for (const char* name : {"Containerfile", "Dockerfile"})
    if (context.stat(name)) return context.readFile(name, kMaxContainerfile);
  return fail(
      plainError(Stage::usage, "build", options.context, "has neither Containerfile nor Dockerfile", "--file FILE"));
}

/// The full names; an error for one that needs a signature.
Result<std::vector<std::string>> fullNames(const std::vector<std::string>& names,
                                           const approval::ImageSettings& settings) {
  std::vector<std::string> full;
  for (const std::string& name : names) {
    const auto reference = Reference::parse(name);
    if (!reference) return fail(reference.error());
    if (reference->digest) return fail(plainError(Stage::usage, "image", name, "a new name has no digest"));
    if (auto allowed = checkNewName(*reference, settings); !allowed) return fail(allowed.error());
    full.push_back(reference->tagged());
  }
  return full;
}

}  // namespace

Result<StoredName> buildImage(const Store& store, const BuildOptions& options, Progress& progress) {
  const auto names = fullNames(options.names, options.settings);
  if (!names) return fail(names.error());
  const auto context = sys::RootDir::open(options.context, {.known_as = options.context});
  if (!context) return fail(context.error());
  const auto text = readContainerfile(options, *context);
  if (!text) return fail(text.error());
  const auto instructions = parseContainerfile(*text);
  if (!instructions) return fail(instructions.error());
  // The images of FROM and COPY --from are read long after they were found; until the end nothing may remove them.
  const auto in_use = StoreLock::take(store.root(), kUseLock, StoreLock::Kind::shared, kLockTimeout);
  if (!in_use) return fail(in_use.error());
  Builder builder(store, options, *context, progress);
  for (const Instruction& instruction : *instructions) {
    if (builder.reachedTarget(instruction)) break;
    if (auto done = builder.perform(instruction); !done) return fail(done.error());
  }
  return builder.finish(*names);
}

Result<StoredName> commitSession(const Store& store, const std::string& session, const std::vector<std::string>& names,
                                 std::uint64_t quota, const std::string& program, Progress& progress) {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  const auto full = fullNames(names, owner->images);
  if (!full) return fail(full.error());
  auto sessions = SessionStore::open(program);
  if (!sessions) return fail(sessions.error());
  auto opened = sessions->find(session);
  if (!opened) return fail(opened.error());
  const auto policy = opened->policyJson();
  if (!policy) return fail(policy.error());
  const auto document = JsonValue::parse(*policy);
  const auto filesystem = document ? document->find("filesystem") : std::nullopt;
  const std::string root = filesystem ? filesystem->textAt("root").value_or("") : "";
  const auto in_use = StoreLock::take(store.root(), kUseLock, StoreLock::Kind::shared, kLockTimeout);
  if (!in_use) return fail(in_use.error());
  const auto layers = rootChanges(opened->id());
  if (!layers) return fail(layers.error());
  const auto index = store.names();
  if (!index) return fail(index.error());
  const auto base = findImage(store.root(), *index, root);
  if (!base) return fail(base.error());
  auto draft = draftOf(store, *base);
  if (!draft) return fail(draft.error());
  for (std::size_t i = 0; i + 1 < layers->size(); ++i) {
    const auto stored = addLayer(store, *draft, quota, "caisson image commit", std::nullopt, progress,
                                 [&](LayerArchive& archive) { return archive.upperDirectory((*layers)[i]); });
    if (!stored) return stored;
  }
  return addLayer(store, *draft, quota, "caisson image commit", *full, progress,
                  [&](LayerArchive& archive) { return archive.upperDirectory(layers->back()); });
}

}  // namespace caisson::image
