// Copies of agents' settings files without secrets: only the keys of an allowlist, and of these no value that is, names
// or follows a secret.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::cli {

enum class SettingsFormat { json, toml, yaml, text };

/// A file below the home that configures an agent; with the format `text` also a directory of files.
///
/// `keys` are patterns of paths in the document, with `/` between keys; lists have no part in them. `*` stands for any
/// part of one key. A pattern allows a value, not a table; `/**` at the end allows everything below, and `/!` too,
/// but as a whole or not at all. `=` at the start: the name may look like a secret's, and the value is a plain word.
/// `servers` are patterns of MCP servers, which are copied as a whole or not at all: without its variables and headers
/// a server does not work.
struct SettingsFile {
  std::string_view path;
  SettingsFormat format = SettingsFormat::text;
  std::span<const std::string_view> keys;
  std::span<const std::string_view> servers;
};

struct CleanSettings {
  std::string text;                   ///< in the format of the file
  std::vector<std::string> left_out;  ///< keys, as text that can be displayed
};

/// The copy of a document. An error says why it cannot be read, without its content.
std::expected<CleanSettings, std::string> cleanSettings(const SettingsFile& file, std::string_view text);

/// Whether a file of text may hold a secret. The path decides how it is read: as prose, or also as a document.
bool mayHoldSecret(std::string_view path, std::string_view text);

}  // namespace caisson::cli
