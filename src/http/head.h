// From the bytes of a request to its head and body, without sockets. Internal: includes Beast.
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"
#include "http/parser.h"

namespace caisson::http {

/// Parses a complete head, up to and including the empty line. Returns 0, or the status of the failure with its reason.
int parseHead(std::string_view text, std::size_t limit, MessageParser<true>& parser, RequestHead& head,
              std::string& reason);

/// Moves bytes of the body from `input` to `parser.body`. False if they are malformed. `limit`: of the head of a chunk.
bool feedBody(MessageParser<true>& parser, std::string& input, std::size_t limit);

}  // namespace caisson::http
