// Packets that the sandbox's firewall blocked, reported by the kernel with their first bytes (NFLOG).
#pragma once

#include <optional>
#include <span>

#include "egress/server.h"

namespace caisson::egress {

/// The destination of a packet, from its first bytes.
struct PacketTarget {
  std::string operation;  ///< "udp", "icmp", "protocol 132"
  Address address;
  std::uint16_t port = 0;  ///< of UDP; else 0
};

/// nullopt if it is not the beginning of an IP packet.
std::optional<PacketTarget> readPacket(std::span<const std::uint8_t> bytes);

class PacketLog final : public Watcher {
 public:
  explicit PacketLog(Server& server) : server_(server) {}

  /// Watches the NFLOG socket, which the caller keeps owning.
  void serve(int netlink);
  void onEvents(int descriptor, std::uint32_t events) override;
  /// After the sandbox is gone: reads what is left in the socket.
  void finish();

 private:
  /// Handles one datagram; false if there is none.
  bool receive();
  /// Counts the packets between the last number and this one as denied: the kernel numbers messages that it drops
  /// because we read too slowly.
  void countMissing(std::uint32_t sequence);
  /// Parses one NFLOG message: its sequence number and its packet.
  void takeMessage(std::span<const std::uint8_t> rest);
  /// Reports one blocked packet as a denied request.
  void take(std::span<const std::uint8_t> packet);

  Server& server_;
  int netlink_ = -1;
  std::uint32_t next_sequence_ = 0;  ///< expected number of the next message
  bool overrun_ = false;             ///< packets are missing since the last received one
};

}  // namespace caisson::egress
