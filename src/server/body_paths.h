// Paths in the body of a request. JSON has no other way for a path that is not UTF-8 than base64, for all paths of the
// body together; a query has percent-encoded bytes.
#pragma once

#include "server/route.h"

namespace caisson::server {

inline constexpr Field kPathEncoding{
    .name = "encoding", .description = "Of the paths: utf-8 or base64.", .choices = "utf-8,base64"};

/// The path in a field of the body; nothing if its base64 is invalid or has a NUL.
std::optional<std::string> pathInBody(const Call& call, std::string_view field);
/// The same for a list of paths; empty if the field is missing.
std::optional<std::vector<std::string>> pathsInBody(const Call& call, std::string_view field);
/// The response if there is none.
http::Response invalidPath();

}  // namespace caisson::server
