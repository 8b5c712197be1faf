// The HTTP server: one event loop for connections and streams, bounded threads for blocking work.
//
// HTTP/1.1 with keep-alive and pipelining, on TCP, TLS and unix sockets. Nothing a peer does occupies a thread, or
// memory beyond the limits below, for longer than a timeout: heads and bodies have deadlines, slow readers are
// disconnected, and the handler sees a body only after it admitted the head. Boost.Asio runs the loop, Beast parses;
// neither is visible here, so that few files pay for their headers.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "http/message.h"
#include "http/workers.h"

namespace caisson::http {

struct ListenSocket {
  sys::Fd socket;                 ///< listening, non-blocking
  std::string address;            ///< for the log: "127.0.0.1:7080", or a path
  std::string tls_cert, tls_key;  ///< PEM files; empty: no TLS
};

/// Parses PORT, HOST:PORT, [HOST]:PORT or localhost:PORT. Port 0 selects a free one. Without `anywhere`, the host must
/// be a loopback address; `tls_hint` ends the hint of that error.
Result<ListenSocket> listenTcp(std::string_view address, bool anywhere, std::string_view tls_hint = {});
/// Listens on a unix socket that only this user can connect to. Replaces a stale socket; an error if another
/// process serves it.
Result<ListenSocket> listenUnix(const std::string& path);
/// The sockets that a service manager passed (LISTEN_FDS). Clears the variables. Empty if there are none. An error if
/// one is neither a unix nor a TCP socket, or, without `anywhere`, bound to more than a loopback address.
Result<std::vector<ListenSocket>> inheritedSockets(bool anywhere);
/// The port of a TCP socket; 0 for others.
int portOf(int socket);

struct Limits {
  std::size_t head = 16U << 10U;
  std::size_t headers = 100;
  std::size_t connections = 16'384;  ///< lowered to what RLIMIT_NOFILE allows
  std::size_t connections_per_peer = 12'288;
  std::size_t reserved = 256;  ///< connections that only this user gets, on a unix socket; not limited per peer
  std::chrono::milliseconds head_timeout{10'000};
  std::chrono::milliseconds idle_timeout{75'000};   ///< head_timeout until the first request of a known caller
  std::chrono::milliseconds body_timeout{30'000};   ///< without a byte of a body
  std::chrono::milliseconds write_timeout{30'000};  ///< for each piece of up to 256 KiB
  std::chrono::milliseconds stop_timeout{10'000};   ///< for requests that run while the server stops
};

/// Threads and queued requests of each Lane.
struct LaneOptions {
  WorkerLimits quick{.threads = 32, .queue = 4096, .threads_per_caller = 8, .queue_per_caller = 1280, .reserved = 8};
  WorkerLimits control{
      .threads = 128, .queue = 1024, .threads_per_caller = 12, .queue_per_caller = 256, .reserved = 16};
  WorkerLimits transfer{.threads = 288, .queue = 1024, .queue_per_caller = 256, .reserved = 32};
  WorkerLimits command{.threads = 288, .queue = 1024, .queue_per_caller = 256, .reserved = 32};
  WorkerLimits preview{.threads = 16, .queue = 1024, .threads_per_caller = 4, .queue_per_caller = 256};
};

struct ServerOptions {
  std::vector<ListenSocket> listeners;
  Limits limits;
  LaneOptions lanes;
};

struct ServerStats {
  std::atomic<std::uint64_t> accepted{0}, refused{0}, requests{0}, open{0}, streams{0}, bytes_sent{0};
};

class Server {
 public:
  /// An error if a certificate cannot be loaded.
  static Result<std::unique_ptr<Server>> create(ServerOptions options, Handler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Serves until `until` becomes readable. Then accepts nothing more, ends idle connections and streams, waits for
  /// running requests up to Limits::stop_timeout, and closes the rest.
  void run(int until);
  [[nodiscard]] const ServerStats& stats() const;

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace caisson::http
