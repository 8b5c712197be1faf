// What a server prints when it listens.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "http/server.h"

namespace caisson::server {

/// For a person at a terminal: the addresses, who may use them, and a first request.
std::string announcement(std::span<const http::ListenSocket> sockets, std::optional<std::size_t> preview);

}  // namespace caisson::server
