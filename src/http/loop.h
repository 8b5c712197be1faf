// What the connections of one server share. Internal: includes Asio.
#pragma once

#include <map>
#include <set>
#include <utility>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "http/server.h"
#include "http/watch_reserve.h"
#include "http/workers.h"

namespace caisson::http {

namespace asio = boost::asio;
using BoostError = boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Clock = std::chrono::steady_clock;

class Connection;

struct Loop {
  Loop(Handler& server_handler, const Limits& server_limits, const LaneOptions& lanes)
      : handler(server_handler),
        limits(server_limits),
        quick(lanes.quick),
        control(lanes.control),
        transfer(lanes.transfer),
        command(lanes.command),
        preview(lanes.preview) {}

  Workers& workers(Lane lane) {
    switch (lane) {
      case Lane::quick: return quick;
      case Lane::control: return control;
      case Lane::transfer: return transfer;
      case Lane::command: return command;
      case Lane::preview: return preview;
    }
    return quick;
  }

  Handler& handler;
  Limits limits;
  WatchReserve watches{64, 16};
  ServerStats stats;
  std::set<Connection*> connections;
  std::map<std::string, std::size_t> per_peer;  ///< by Peer::group
  /// Connections without a request of a known caller yet, oldest first. They give way to new ones.
  std::map<std::uint64_t, Connection*> newcomers;
  /// Connections of one caller (Admission::caller) that is known.
  struct Holder {
    std::size_t connections = 0;
    std::map<std::uint64_t, Connection*> idle;  ///< that wait for a request, for the longest time first
  };
  std::map<std::string, Holder> holders;
  std::uint64_t last_idle = 0;  ///< key in Holder::idle
  std::uint64_t last_number = 0;
  bool stopping = false;
  std::string scratch = std::string(std::size_t{64} << 10U, '\0');  ///< for reads that are copied at once
  asio::io_context io{1};  ///< after the above: connections that it still holds when it is destroyed unregister
  // Last: their destructors wait for tasks, which post to `io`.
  Workers quick, control, transfer, command, preview;
};

}  // namespace caisson::http
