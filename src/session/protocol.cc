#include "session/protocol.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "sys/receive.h"

namespace caisson::session {
namespace {

constexpr std::size_t kInlineBytes = 32 * 1024;
constexpr std::uint64_t kMaxValueBytes = 64ULL << 20;

constexpr std::uint32_t kMark = 0x43540000;

std::uint32_t marked(ProtocolRange range) {
  return kMark | static_cast<std::uint32_t>(range.oldest << 8U) | range.newest;
}

/// Nothing if the first bytes of a message have another mark.
std::optional<ProtocolRange> rangeIn(std::uint32_t protocol) {
  if ((protocol & 0xffff0000U) != kMark) return std::nullopt;
  return ProtocolRange{static_cast<std::uint8_t>((protocol >> 8U) & 0xffU),
                       static_cast<std::uint8_t>(protocol & 0xffU)};
}

/// The same in all versions.
struct Header {
  std::uint32_t protocol = marked(ownProtocols());
  MessageType type = MessageType::done;
  std::uint64_t bytes = 0;    ///< of the value
  std::uint32_t in_file = 0;  ///< 1: the last descriptor is a memory file with the value
};

sys::Fd valueFile(const std::string& value) {
  sys::Fd file(::memfd_create("caisson-message", MFD_CLOEXEC));
  for (std::size_t done = 0; file && done < value.size();) {
    const ssize_t wrote = ::write(file.get(), value.data() + done, value.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) file.reset();
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  return file;
}

bool readValue(const sys::Fd& file, std::uint64_t bytes, std::string& value) {
  if (bytes > kMaxValueBytes) return false;
  value.resize(bytes);
  for (std::size_t done = 0; done < value.size();) {
    const ssize_t got = ::pread(file.get(), value.data() + done, value.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

std::optional<std::uint8_t> commonProtocol(ProtocolRange one, ProtocolRange other) {
  const std::uint8_t newest = std::min(one.newest, other.newest);
  if (newest < std::max(one.oldest, other.oldest)) return std::nullopt;
  return newest;
}

std::string describe(ProtocolRange range) {
  // Before 8 a number was the only version that a program spoke.
  if (range.oldest == range.newest || range.oldest == 0) return "version " + std::to_string(range.newest);
  return "versions " + std::to_string(range.oldest) + " to " + std::to_string(range.newest);
}

int sendPacket(int socket, MessageType type, const std::string& value, std::vector<int> descriptors, bool wait) {
  Header header{.type = type, .bytes = value.size(), .in_file = value.size() > kInlineBytes ? 1U : 0U};
  sys::Fd file;
  if (header.in_file != 0) {
    file = valueFile(value);
    if (!file) return ENOMEM;
    descriptors.push_back(file.get());
  }
  iovec parts[2] = {{&header, sizeof(header)},
                    {const_cast<char*>(value.data()), header.in_file != 0 ? std::size_t{0} : value.size()}};
  if (descriptors.size() > kMaxPacketDescriptors + 1) return EMSGSIZE;
  alignas(cmsghdr) char room[CMSG_SPACE((kMaxPacketDescriptors + 1) * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (!descriptors.empty()) {
    const std::size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(part), descriptors.data(), bytes);
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
  } while (sent < 0 && errno == EINTR);
  return sent > 0 ? 0 : errno;
}

Receipt receivePacket(int socket, Packet& packet) {
  alignas(Header) std::array<std::byte, sizeof(Header) + kInlineBytes> room;
  std::array<sys::Fd, kMaxPacketDescriptors + 1> descriptors;
  const ssize_t got = sys::receiveMessage(socket, room, descriptors, MSG_DONTWAIT);
  if (got == -EAGAIN) return Receipt::nothing;
  Header header;
  if (got < static_cast<ssize_t>(sizeof(header))) return Receipt::closed;
  std::memcpy(static_cast<void*>(&header), room.data(), sizeof(header));
  const std::size_t inline_bytes = static_cast<std::size_t>(got) - sizeof(header);
  const auto sender = rangeIn(header.protocol);
  if (!sender || (header.in_file == 0 && header.bytes != inline_bytes)) return Receipt::closed;
  const Receipt receipt = commonProtocol(*sender, ownProtocols()) ? Receipt::message : Receipt::other_version;
  packet.sender = *sender;
  packet.type = header.type;
  packet.descriptors.clear();
  for (sys::Fd& descriptor : descriptors) {
    if (descriptor) packet.descriptors.push_back(std::move(descriptor));
  }
  if (header.in_file == 0) {
    packet.value.assign(reinterpret_cast<const char*>(room.data()) + sizeof(header), inline_bytes);
    return receipt;
  }
  if (packet.descriptors.empty()) return Receipt::closed;
  const sys::Fd file = std::move(packet.descriptors.back());
  packet.descriptors.pop_back();
  return readValue(file, header.bytes, packet.value) ? receipt : Receipt::closed;
}

}  // namespace caisson::session
