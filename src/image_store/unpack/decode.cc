#include "image_store/unpack/decode.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string>

#include "image_store/layer_stream.h"
#include "image_store/unpack/inflate.h"

namespace caisson::image {
namespace {

constexpr std::size_t kFlushAt = 256U << 10;
constexpr std::uint64_t kMaxRatio = 400;
constexpr std::uint64_t kRatioFrom = 256U << 20;
constexpr std::size_t kMaxAttributes = 1024;

/// Collects frames and passes them on in large pieces.
class FrameWriter {
 public:
  explicit FrameWriter(const std::function<void(std::string_view)>& sink) : sink_(sink) {
    buffer_.reserve(2 * kFlushAt);
  }

  void send(FrameType type, std::uint64_t value, std::string_view body) {
    const FrameHead head{static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(body.size()), value};
    buffer_.append(reinterpret_cast<const char*>(&head), sizeof(head));
    buffer_.append(body);
    if (buffer_.size() >= kFlushAt) flush();
  }
  void flush() {
    sink_(buffer_);
    buffer_.clear();
  }

 private:
  const std::function<void(std::string_view)>& sink_;
  std::string buffer_;
};

EntryKind kindOf(archive_entry* entry) {
  if (archive_entry_hardlink(entry) != nullptr) return EntryKind::hard_link;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG: return EntryKind::file;
    case AE_IFDIR: return EntryKind::directory;
    case AE_IFLNK: return EntryKind::link;
    case AE_IFCHR: return EntryKind::character;
    case AE_IFBLK: return EntryKind::block;
    case AE_IFIFO: return EntryKind::fifo;
    case AE_IFSOCK: return EntryKind::socket;
    default: return EntryKind::other;
  }
}

std::string attributesOf(archive_entry* entry) {
  std::string names;
  const auto add = [&](std::string_view name) {
    if (names.size() < kMaxAttributes) names.append(names.empty() ? "" : ",").append(name.substr(0, 100));
  };
  archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    if (name != nullptr) add(name);
  }
  if (archive_entry_acl_types(entry) != 0) add("system.posix_acl");
  return names;
}

/// The name, or "" if it cannot be represented; the writer refuses an empty name.
std::string textOf(const char* text) { return text == nullptr ? "" : text; }

ArchiveEntry describe(archive_entry* entry) {
  ArchiveEntry result{.kind = kindOf(entry),
                      .mode = static_cast<std::uint32_t>(archive_entry_perm(entry)) & 07777U,
                      .uid = static_cast<std::uint64_t>(archive_entry_uid(entry)),
                      .gid = static_cast<std::uint64_t>(archive_entry_gid(entry)),
                      .mtime = archive_entry_mtime(entry),
                      .size = static_cast<std::uint64_t>(archive_entry_size(entry)),
                      .name = textOf(archive_entry_pathname(entry)),
                      .attributes = attributesOf(entry)};
  if (result.kind == EntryKind::hard_link) result.target = textOf(archive_entry_hardlink(entry));
  if (result.kind == EntryKind::link) result.target = textOf(archive_entry_symlink(entry));
  return result;
}

/// Feeds libarchive. Some tools (umoci) omit the padding after the last file, so it is added at the end.
struct Source {
  Inflater* inflater;
  bool padded = false;

  static la_ssize_t read(archive*, void* self, const void** block) {
    static constexpr char kPadding[512] = {};
    auto& source = *static_cast<Source*>(self);
    const auto piece = source.inflater->next();
    *block = piece.data();
    if (!piece.empty() || source.padded || !source.inflater->problem().empty())
      return static_cast<la_ssize_t>(piece.size());
    source.padded = true;
    *block = kPadding;
    return static_cast<la_ssize_t>((512 - source.inflater->produced() % 512) % 512);
  }
};

/// The whole archive. Returns the reason of a failure, or "".
std::string decode(archive* in, Inflater& inflater, FrameWriter& out, bool with_data) {
  archive_entry* header = nullptr;
  const auto reason = [&] {
    if (!inflater.problem().empty()) return inflater.problem();
    const char* text = archive_error_string(in);
    return std::string("not a valid tar archive: ") + (text == nullptr ? "unknown reason" : text);
  };
  while (true) {
    const int status = archive_read_next_header(in, &header);
    if (!inflater.problem().empty()) return inflater.problem();
    if (status == ARCHIVE_EOF) return "";
    // A warning means that libarchive understood less than the archive says; another tool would see other files.
    if (status != ARCHIVE_OK) return reason();
    const ArchiveEntry entry = describe(header);
    const std::string encoded = entry.encoded();
    if (encoded.size() > kMaxEntryFrame) return "an entry's names are too long";
    out.send(FrameType::entry, 0, encoded);
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    while (with_data && entry.kind == EntryKind::file) {
      const int got = archive_read_data_block(in, &block, &size, &offset);
      if (got == ARCHIVE_EOF) break;
      if (got != ARCHIVE_OK) return reason();
      std::string_view data(static_cast<const char*>(block), size);
      for (std::uint64_t at = static_cast<std::uint64_t>(offset); !data.empty();) {
        const std::string_view piece = data.substr(0, kMaxData);
        out.send(FrameType::data, at, piece);
        at += piece.size();
        data.remove_prefix(piece.size());
      }
    }
    out.send(FrameType::end_of_entry, 0, "");
  }
}

}  // namespace

bool decodeArchive(int input, bool with_data, std::uint64_t max_bytes,
                   const std::function<void(std::string_view)>& sink) {
  Inflater inflater(input, {.bytes = max_bytes, .ratio = kMaxRatio, .ratio_from = kRatioFrom});
  FrameWriter out(sink);
  const std::unique_ptr<archive, decltype(&archive_read_free)> owner(archive_read_new(), archive_read_free);
  archive* in = owner.get();
  archive_read_support_format_tar(in);
  archive_read_support_format_empty(in);
  archive_read_support_filter_none(in);
  // Names are bytes here; without this libarchive converts UTF-8 pax names to the C locale and fails.
  archive_read_set_options(in, "hdrcharset=BINARY");
  Source source{.inflater = &inflater};
  std::string problem;
  if (archive_read_open(in, &source, nullptr, Source::read, nullptr) != ARCHIVE_OK) {
    const char* text = archive_error_string(in);
    problem =
        !inflater.problem().empty() ? inflater.problem() : std::string("not a tar archive: ") + (text ? text : "");
  } else {
    problem = decode(in, inflater, out, with_data);
  }
  // The DiffID covers the padding after the last entry too.
  while (problem.empty() && !inflater.next().empty()) {
  }
  if (problem.empty()) problem = inflater.problem();
  if (problem.empty()) {
    out.send(FrameType::finished, inflater.produced(), "sha256:" + hex(inflater.digest()));
  } else {
    out.send(FrameType::failed, 0, problem.substr(0, 1000));
  }
  out.flush();
  return problem.empty();
}

}  // namespace caisson::image
