// Base 64 (RFC 4648) for bytes that JSON text cannot hold.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

std::string base64(std::string_view bytes);

}  // namespace caisson::cli
