// The broker's settings, including secrets: one packet over a private socket.
//
// The packet's memory is wiped: the only remaining copy of a secret is the one that the broker keeps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::broker {

/// Bytes that are overwritten when released, and excluded from swap and core files where the kernel allows that.
class SecretBytes {
 public:
  explicit SecretBytes(std::size_t size);
  SecretBytes(SecretBytes&& other) noexcept;
  SecretBytes& operator=(SecretBytes&&) = delete;
  ~SecretBytes();

  [[nodiscard]] char* data() { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view text() const { return {data_, size_}; }
  [[nodiscard]] bool valid() const { return data_ != nullptr; }  ///< false: there was no memory
  /// Shortens the text to its first `size` bytes and wipes the rest.
  void shrink(std::size_t size);

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

/// The version of the messages between a supervisor, its egress process and its broker. A supervisor that runs on after
/// an upgrade starts the broker of the new version.
inline constexpr std::uint64_t kBrokerProtocol = 1;

/// Views into memory that the creator owns.
struct CredentialView {
  std::string_view name;
  std::string_view target;  ///< "host:port"
  std::string_view header;
  std::string_view value;  ///< contains {secret}
  std::string_view secret;
  std::string_view authorities;  ///< PEM; empty: Settings::authorities
};

struct Settings {
  std::vector<CredentialView> credentials;
  std::string_view authorities;           ///< PEM: trusted authorities for hosts
  std::uint64_t lifetime_seconds = 3600;  ///< of the certificates
  std::uint64_t max_connections = 64;
  std::optional<uid_t> become;  ///< if the caller is root, the broker runs as this user and group
  int landlock_abi = 0;
};

/// The packet for the broker, secrets included. Not valid() if there is no memory.
SecretBytes encode(const Settings& settings);
/// The protocol version of a packet; 0 if it has none.
std::uint64_t protocolOf(std::string_view packet);
/// nullopt for a malformed packet and for one of another protocol version. The result has views into `packet`, which
/// must outlive it.
std::optional<Settings> decodeSettings(std::string_view packet);

/// The broker's open descriptors: to the process that started it, and to the egress process.
inline constexpr int kStarterEnd = 3, kEgressEnd = 4;
inline constexpr std::size_t kMaxSettingsBytes = 32 * 1024 * 1024;

/// The reply to the settings: "ready" and the authority's certificate, or "failed" and the reason.
struct Answer {
  bool ready = false;  ///< false: `text` is the reason
  std::string text;
};

/// Sends a message with its length in front; false on failure or after ten seconds without progress.
bool sendCounted(int socket, std::string_view bytes);
/// Receives such a message; nullopt on failure or after ten seconds without a byte.
std::optional<SecretBytes> receiveCounted(int socket);
std::string encode(const Answer& answer);
std::optional<Answer> decodeAnswer(std::string_view packet);

}  // namespace caisson::broker
