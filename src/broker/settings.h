// What the broker is told at its start, secrets included: one packet over a socket that nobody else has.
//
// The packet is memory that is wiped: no copy of a secret is made on either side but the one the broker keeps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::broker {

/// Bytes that are overwritten when they are no longer needed, and that swapping and core files leave alone if the
/// kernel lets us say so.
class SecretBytes {
 public:
  explicit SecretBytes(std::size_t size);
  SecretBytes(SecretBytes&& other) noexcept;
  SecretBytes& operator=(SecretBytes&&) = delete;
  ~SecretBytes();

  [[nodiscard]] char* data() { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view text() const { return {data_, size_}; }
  [[nodiscard]] bool valid() const { return data_ != nullptr; }
  /// Forgets what comes after the first `size`.
  void shrink(std::size_t size);

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
};

/// Views, into memory of whoever made it.
struct CredentialView {
  std::string_view name;
  std::string_view target;  ///< "host:port"
  std::string_view header;
  std::string_view value;  ///< with {secret} in it
  std::string_view secret;
  std::string_view authorities;  ///< PEM; empty: the common ones
};

struct Settings {
  std::vector<CredentialView> credentials;
  std::string_view authorities;  ///< PEM: who may vouch for a host
  std::uint64_t lifetime_seconds = 3600;
  std::uint64_t max_connections = 64;
  std::optional<uid_t> become;
  int landlock_abi = 0;
};

SecretBytes encode(const Settings& settings);
/// Views into `packet`.
std::optional<Settings> decodeSettings(std::string_view packet);

/// Descriptors that the broker finds open: to who started it, and to the egress process.
inline constexpr int kStarterEnd = 3, kEgressEnd = 4;
inline constexpr std::size_t kMaxSettingsBytes = 32 * 1024 * 1024;

/// The answer to the settings: "ready" and the certificate of its authority, or "failed" and why.
struct Answer {
  bool ready = false;
  std::string text;
};

/// Messages with their length before them; an answer is small. Each returns whether it went through in ten seconds.
bool sendCounted(int socket, std::string_view bytes);
std::optional<SecretBytes> receiveCounted(int socket);
std::string encode(const Answer& answer);
std::optional<Answer> decodeAnswer(std::string_view packet);

}  // namespace caisson::broker
