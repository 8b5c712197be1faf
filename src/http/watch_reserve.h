// Epoll watches for later. The kernel counts them per user (fs.epoll.max_user_watches), so a sandbox of the same user
// can use up all of them, and Asio could register no new connection.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "sys/fd.h"

namespace caisson::http {

/// The reason in a response.
inline constexpr std::string_view kNoWatches =
    "the server's user has no epoll watches left; end the sandbox that uses them, or raise fs.epoll.max_user_watches";

class WatchReserve {
 public:
  /// Holds up to `count` watches, with a descriptor each; the last `for_owner` are given up for the owner only.
  WatchReserve(std::size_t count, std::size_t for_owner);

  /// Whether one more descriptor can be registered. Asio keeps memory for each registration that fails, so this comes
  /// first.
  [[nodiscard]] bool isAvailable();
  /// The same, but gives up a held watch if there is no other.
  [[nodiscard]] bool makeRoom(bool owner);
  /// Holds again what was given up, as far as possible.
  void refill();

 private:
  [[nodiscard]] bool add(int descriptor) const;

  std::size_t count_, for_owner_;
  sys::Fd epoll_, probe_;
  std::vector<sys::Fd> held_;  ///< registered with epoll_; closing one frees its watch
};

}  // namespace caisson::http
