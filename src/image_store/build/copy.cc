#include "image_store/build/copy.h"

#include <fnmatch.h>

#include <cerrno>

#include "base/text.h"
#include "image_store/build/containerfile.h"

namespace caisson::image {
namespace {

Error copyError(std::string_view path, std::string_view reason) {
  return plainError(Stage::usage, "build", "COPY " + printable(path, 300), reason);
}

std::string joinPath(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

/// Without `.` and slashes at the ends; an error for `..`.
Result<std::string> plainPath(std::string_view text) {
  std::string path;
  for (const std::string_view part : split(text, '/')) {
    if (part == ".") continue;
    if (part == "..") return fail(copyError(text, "the path leads out of the build context"));
    path = joinPath(path, part);
  }
  return path;
}

/// The paths that a source with wildcards names.
Result<std::vector<std::string>> expand(const CopySource& source, const std::string& pattern) {
  std::vector<std::string> found{""};
  for (const std::string_view part : split(pattern, '/')) {
    std::vector<std::string> next;
    for (const std::string& directory : found) {
      if (part.find_first_of("*?[") == std::string_view::npos) {
        next.push_back(joinPath(directory, part));
        continue;
      }
      const auto names = source.list(directory);
      if (!names) continue;
      for (const std::string& name : *names)
        if (::fnmatch(std::string(part).c_str(), name.c_str(), FNM_PERIOD) == 0)
          next.push_back(joinPath(directory, name));
    }
    found = std::move(next);
  }
  std::erase_if(found, [&](const std::string& path) { return !source.stat(path) || source.ignored(path); });
  if (found.empty()) return fail(copyError(pattern, "no such file in the build context"));
  return found;
}

class Copier {
 public:
  Copier(LayerArchive& archive, const MergedView& image, const CopySource& source, std::optional<std::uint32_t> mode)
      : archive_(archive), image_(image), source_(source), mode_(mode) {}

  /// The directories above a path; those of the image keep their mode.
  Result<void> parents(const std::string& path) {
    for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      const std::string directory = path.substr(0, end);
      const auto known = image_.find(directory);
      const std::uint32_t mode = known && known->info.type == sys::FileType::directory ? known->info.mode : 0755U;
      if (auto added = archive_.directory(directory, mode, 0); !added) return added;
    }
    return {};
  }

  Result<void> entry(const std::string& from, const std::string& to) {
    if (source_.ignored(from)) return {};
    const auto info = source_.stat(from);
    if (!info) return fail(copyError(from, "no such file in the build context"));
    const std::int64_t time = info->modified_ns / 1'000'000'000;
    if (info->type == sys::FileType::directory) {
      if (auto added = archive_.directory(to, mode_.value_or(info->mode & 0777), time); !added) return added;
      return contents(from, to);
    }
    if (info->type == sys::FileType::link) {
      const auto target = source_.readLink(from);
      return target ? archive_.link(to, *target, time) : fail(target.error());
    }
    if (info->type != sys::FileType::regular) return {};
    const auto file = source_.open(from);
    if (!file) return fail(file.error());
    return archive_.file(to, mode_.value_or(info->mode & 0777), time, file->get(), info->size);
  }

  Result<void> contents(const std::string& from, const std::string& to) {
    const auto names = source_.list(from);
    if (!names) return fail(names.error());
    for (const std::string& name : *names)
      if (auto copied = entry(joinPath(from, name), joinPath(to, name)); !copied) return copied;
    return {};
  }

 private:
  LayerArchive& archive_;
  const MergedView& image_;
  const CopySource& source_;
  std::optional<std::uint32_t> mode_;
};

}  // namespace

CopySource contextSource(const sys::RootDir& context, std::vector<std::string> ignore) {
  return {.stat = [&context](const std::string& path) -> std::optional<sys::FileInfo> {
            auto info = context.stat(path);
            return info ? std::optional(*info) : std::nullopt;
          },
          .list = [&context](const std::string& path) -> Result<std::vector<std::string>> {
            const auto entries = context.list(path);
            if (!entries) return fail(entries.error());
            std::vector<std::string> names;
            for (const sys::DirectoryEntry& one : *entries) names.push_back(one.name);
            return names;
          },
          .open = [&context](const std::string& path) { return context.openFile(path, {}); },
          .readLink = [&context](const std::string& path) { return context.readLink(path); },
          .ignored = [lines = std::move(ignore)](const std::string& path) { return isIgnored(lines, path); }};
}

namespace {

/// The layer that has the file; an error if another command removed it meanwhile.
Result<const sys::RootDir*> layerOf(const MergedView& view, const std::string& path) {
  const auto entry = view.find(path);
  if (!entry) return fail(sysError(Stage::state, "stat", path, ENOENT));
  return &view.layer(entry->layer);
}

}  // namespace

CopySource viewSource(const MergedView& view) {
  return {.stat = [&view](const std::string& path) -> std::optional<sys::FileInfo> {
            const auto entry = view.find(path);
            return entry ? std::optional(entry->info) : std::nullopt;
          },
          .list = [&view](const std::string& path) { return view.list(path); },
          .open = [&view](const std::string& path) -> Result<sys::Fd> {
            const auto layer = layerOf(view, path);
            return layer ? (*layer)->openFile(path, {}) : fail(layer.error());
          },
          .readLink = [&view](const std::string& path) -> Result<std::string> {
            const auto layer = layerOf(view, path);
            return layer ? (*layer)->readLink(path) : fail(layer.error());
          },
          .ignored = [](const std::string&) { return false; }};
}

Result<void> copyInto(LayerArchive& archive, const MergedView& image, const CopySource& source,
                      const CopyRequest& request) {
  std::vector<std::string> paths;
  for (const std::string& one : request.sources) {
    const auto plain = plainPath(one);
    if (!plain) return fail(plain.error());
    const auto expanded = plain->empty() ? Result<std::vector<std::string>>({std::string()}) : expand(source, *plain);
    if (!expanded) return fail(expanded.error());
    paths.insert(paths.end(), expanded->begin(), expanded->end());
  }
  const auto target = image.resolve(request.target);
  if (!target) return fail(copyError(request.target, "the target is a loop of links"));
  const auto existing = image.find(*target);
  const bool directory = request.target.ends_with('/') || paths.size() > 1 ||
                         (existing && existing->info.type == sys::FileType::directory);
  Copier copier(archive, image, source, request.mode);
  for (const std::string& path : paths) {
    const auto info = source.stat(path);
    const bool whole = path.empty() || (info && info->type == sys::FileType::directory);
    const std::string name = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
    const std::string to = whole || !directory ? *target : joinPath(*target, name);
    if (to.empty() && !whole) return fail(copyError(path, "the target is the root directory"));
    if (auto made = copier.parents(whole ? to + "/" : to); !made) return made;
    auto copied = whole ? copier.contents(path, to) : copier.entry(path, to);
    if (!copied) return copied;
  }
  return {};
}

}  // namespace caisson::image
