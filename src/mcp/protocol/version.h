// The supported versions of the protocol, which belong to two revisions of it.
//
// 2026-07-28 is stateless: every request names its version and the client's capabilities in `_meta`. The versions
// before it begin with `initialize`, which fixes both for a connection. One process serves both at the same time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace caisson::mcp {

enum class ProtocolRevision : std::uint8_t { modern, legacy };

inline constexpr std::string_view kModernVersion = "2026-07-28";
/// Newest first: the first is offered to a client that requests an unknown version.
inline constexpr std::array<std::string_view, 4> kLegacyVersions{"2025-11-25", "2025-06-18", "2025-03-26",
                                                                 "2024-11-05"};
/// The version assumed for an HTTP client that names none.
inline constexpr std::string_view kUnnamedHttpVersion = "2025-03-26";

inline bool isLegacyVersion(std::string_view version) {
  return std::find(kLegacyVersions.begin(), kLegacyVersions.end(), version) != kLegacyVersions.end();
}

/// structuredContent, outputSchema, resource links and elicitation came with 2025-06-18. Versions are dates, so they
/// compare as text.
inline bool hasStructuredContent(std::string_view version) { return version >= "2025-06-18"; }

/// The extension of 2026-07-28 for calls that continue after their answer. 2025-11-25 had another form of it in its
/// core.
inline constexpr std::string_view kTasksExtension = "io.modelcontextprotocol/tasks";
inline constexpr std::string_view kLegacyTasksVersion = "2025-11-25";

namespace meta {
inline constexpr std::string_view kProtocolVersion = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kClientCapabilities = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kLogLevel = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kServerInfo = "io.modelcontextprotocol/serverInfo";
inline constexpr std::string_view kSubscriptionId = "io.modelcontextprotocol/subscriptionId";
}  // namespace meta

}  // namespace caisson::mcp
