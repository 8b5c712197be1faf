#include "image_store/layer_stream.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace caisson::image {
namespace {

/// The fixed part of an encoded entry; name, target and attributes follow.
struct FixedEntry {
  std::uint64_t uid, gid, size;
  std::int64_t mtime;
  std::uint32_t mode, kind, name, target, attributes, unused;
};

Error streamError(std::string_view reason) { return plainError(Stage::state, "unpack", "image layer", reason); }

}  // namespace

std::string ArchiveEntry::encoded() const {
  const FixedEntry fixed{.uid = uid,
                         .gid = gid,
                         .size = size,
                         .mtime = mtime,
                         .mode = mode,
                         .kind = static_cast<std::uint32_t>(kind),
                         .name = static_cast<std::uint32_t>(name.size()),
                         .target = static_cast<std::uint32_t>(target.size()),
                         .attributes = static_cast<std::uint32_t>(attributes.size()),
                         .unused = 0};
  std::string bytes(sizeof(fixed), '\0');
  std::memcpy(bytes.data(), &fixed, sizeof(fixed));
  return bytes + name + target + attributes;
}

Result<ArchiveEntry> ArchiveEntry::decode(std::string_view bytes) {
  FixedEntry fixed{};
  if (bytes.size() < sizeof(fixed)) return fail(streamError("the decoder sent a short entry"));
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  bytes.remove_prefix(sizeof(fixed));
  const std::uint64_t total = std::uint64_t{fixed.name} + fixed.target + fixed.attributes;
  if (total != bytes.size() || fixed.kind > static_cast<std::uint32_t>(EntryKind::other)) {
    return fail(streamError("the decoder sent a malformed entry"));
  }
  return ArchiveEntry{.kind = static_cast<EntryKind>(fixed.kind),
                      .mode = fixed.mode & 07777U,
                      .uid = fixed.uid,
                      .gid = fixed.gid,
                      .mtime = fixed.mtime,
                      .size = fixed.size,
                      .name = std::string(bytes.substr(0, fixed.name)),
                      .target = std::string(bytes.substr(fixed.name, fixed.target)),
                      .attributes = std::string(bytes.substr(fixed.name + fixed.target))};
}

Result<void> FrameReader::need(std::size_t count) {
  if (end_ - begin_ >= count) return {};
  if (begin_ + count > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < count) {
    const ssize_t got = ::read(pipe_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::state, "read", "decoder", errno));
    if (got == 0) return fail(streamError("the decoder ended early"));
    end_ += static_cast<std::size_t>(got);
  }
  return {};
}

Result<FrameReader::Frame> FrameReader::next() {
  FrameHead head;
  if (auto ready = need(sizeof(head)); !ready) return fail(ready.error());
  std::memcpy(&head, buffer_.data() + begin_, sizeof(head));
  const bool known = head.type >= 1 && head.type <= static_cast<std::uint32_t>(FrameType::failed);
  const auto type = static_cast<FrameType>(head.type);
  const std::size_t most = type == FrameType::data ? kMaxData : kMaxEntryFrame;
  if (!known || head.length > most) return fail(streamError("the decoder sent a malformed frame"));
  if (auto ready = need(sizeof(head) + head.length); !ready) return fail(ready.error());
  const Frame frame{type, head.value, {buffer_.data() + begin_ + sizeof(head), head.length}};
  begin_ += sizeof(head) + head.length;
  return frame;
}

}  // namespace caisson::image
