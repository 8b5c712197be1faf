#include "broker/settings.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "egress/records.h"

namespace caisson::broker {
namespace {

constexpr std::size_t kHeadTexts = 6, kTextsEach = 6;
constexpr timeval kTimeout{10, 0};

/// Length-prefixed strings like egress/records.h, but as views, so that no secret is copied.
std::optional<std::vector<std::string_view>> split(std::string_view packet) {
  std::vector<std::string_view> texts;
  while (!packet.empty()) {
    std::uint32_t size = 0;
    if (packet.size() < sizeof(size)) return std::nullopt;
    std::memcpy(&size, packet.data(), sizeof(size));
    packet.remove_prefix(sizeof(size));
    if (size > packet.size()) return std::nullopt;
    texts.push_back(packet.substr(0, size));
    packet.remove_prefix(size);
  }
  return texts;
}

SecretBytes join(const std::vector<std::string_view>& texts) {
  std::size_t size = 0;
  for (const std::string_view text : texts) size += sizeof(std::uint32_t) + text.size();
  SecretBytes packet(size);
  char* at = packet.data();
  if (at == nullptr) return packet;
  for (const std::string_view text : texts) {
    const auto length = static_cast<std::uint32_t>(text.size());
    std::memcpy(at, &length, sizeof(length));
    at += sizeof(length);
    if (!text.empty()) std::memcpy(at, text.data(), text.size());
    at += text.size();
  }
  return packet;
}

bool transfer(int socket, char* bytes, std::size_t size, bool out) {
  while (size > 0) {
    const ssize_t done = out ? ::send(socket, bytes, size, MSG_NOSIGNAL) : ::recv(socket, bytes, size, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

}  // namespace

SecretBytes::SecretBytes(std::size_t size) : size_(size), mapped_(size) {
  if (size == 0) mapped_ = 1;
  void* pages = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    size_ = mapped_ = 0;
    return;
  }
  data_ = static_cast<char*>(pages);
  (void)::mlock(data_, mapped_);  // fails beyond the locked-memory limit; then it may be swapped
  (void)::madvise(data_, mapped_, MADV_DONTDUMP);
}

SecretBytes::SecretBytes(SecretBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

SecretBytes::~SecretBytes() {
  if (data_ == nullptr) return;
  ::explicit_bzero(data_, mapped_);
  ::munmap(data_, mapped_);
}

void SecretBytes::shrink(std::size_t size) {
  if (size >= size_) return;
  ::explicit_bzero(data_ + size, size_ - size);
  size_ = size;
}

SecretBytes encode(const Settings& settings) {
  const std::string lifetime = std::to_string(settings.lifetime_seconds);
  const std::string connections = std::to_string(settings.max_connections);
  const std::string become = settings.become ? std::to_string(*settings.become) : "";
  const std::string abi = std::to_string(settings.landlock_abi);
  const std::string protocol = std::to_string(kBrokerProtocol);
  std::vector<std::string_view> texts{protocol, lifetime, connections, become, abi, settings.authorities};
  for (const CredentialView& one : settings.credentials) {
    texts.insert(texts.end(), {one.name, one.target, one.header, one.value, one.secret, one.authorities});
  }
  return join(texts);
}

std::uint64_t protocolOf(std::string_view packet) {
  const auto texts = split(packet);
  return texts && !texts->empty() ? egress::numberIn(texts->front()).value_or(0) : 0;
}

std::optional<Settings> decodeSettings(std::string_view packet) {
  if (protocolOf(packet) != kBrokerProtocol) return std::nullopt;
  const auto texts = split(packet);
  if (!texts || texts->size() < kHeadTexts || (texts->size() - kHeadTexts) % kTextsEach != 0) return std::nullopt;
  const std::vector<std::string_view>& t = *texts;
  const auto lifetime = egress::numberIn(t[1]), connections = egress::numberIn(t[2]);
  const auto user = t[3].empty() ? 0 : egress::numberIn(t[3], std::numeric_limits<uid_t>::max());
  const auto abi = egress::numberIn(t[4], std::numeric_limits<int>::max());
  if (!lifetime || !connections || !user || !abi) return std::nullopt;
  Settings settings;
  settings.lifetime_seconds = *lifetime;
  settings.max_connections = *connections;
  if (!t[3].empty()) settings.become = static_cast<uid_t>(*user);
  settings.landlock_abi = static_cast<int>(*abi);
  settings.authorities = t[5];
  for (std::size_t i = kHeadTexts; i < t.size(); i += kTextsEach) {
    settings.credentials.push_back({t[i], t[i + 1], t[i + 2], t[i + 3], t[i + 4], t[i + 5]});
  }
  return settings;
}

bool sendCounted(int socket, std::string_view bytes) {
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof(kTimeout));
  auto size = static_cast<std::uint32_t>(bytes.size());
  return bytes.size() <= kMaxSettingsBytes && transfer(socket, reinterpret_cast<char*>(&size), sizeof(size), true) &&
         transfer(socket, const_cast<char*>(bytes.data()), bytes.size(), true);
}

std::optional<SecretBytes> receiveCounted(int socket) {
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof(kTimeout));
  std::uint32_t size = 0;
  if (!transfer(socket, reinterpret_cast<char*>(&size), sizeof(size), false) || size > kMaxSettingsBytes) {
    return std::nullopt;
  }
  SecretBytes bytes(size);
  if (!bytes.valid() || !transfer(socket, bytes.data(), size, false)) return std::nullopt;
  return bytes;
}

std::string encode(const Answer& answer) { return (answer.ready ? "ready " : "failed ") + answer.text; }

std::optional<Answer> decodeAnswer(std::string_view packet) {
  constexpr std::string_view kReady = "ready ", kFailed = "failed ";
  if (packet.starts_with(kReady)) return Answer{true, std::string(packet.substr(kReady.size()))};
  if (packet.starts_with(kFailed)) return Answer{false, std::string(packet.substr(kFailed.size()))};
  return std::nullopt;
}

}  // namespace caisson::broker
