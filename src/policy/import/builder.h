// Shared by all importers: the foreign document, the resulting policy, and the report.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/import/import.h"
#include "policy/import/reader.h"

namespace caisson::policy {

class ImportBuilder {
 public:
  using Kind = ImportNote::Kind;
  using Texts = std::vector<std::string>;

  /// The import starts from a built-in profile, which decides every key that the document does not set.
  ImportBuilder(const Document& document, std::string_view shape, std::string_view profile);

  ImportReader& reader() { return reader_; }
  Policy& policy() { return result_.policy; }

  /// Adds a remark about the foreign `key` to the report.
  void note(Kind kind, std::string_view key, std::string text);
  /// Marks `key` as known but not imported; if the document has it, `text` is reported.
  void lossy(std::string_view key, std::string text);
  /// Adds a line for an owner's configuration ("memory = ...") to the result.
  void ceiling(std::string text) { result_.extra_ceilings.push_back(std::move(text)); }
  /// Records an error at the foreign key `from`; finish() returns the first one.
  void refuse(std::string_view from, std::string reason, std::string hint = "");

  /// Sets our `key`, as setKey(). Records an invalid value as refuse() does, at the foreign key `from`.
  void set(std::string_view from, std::string_view key, const std::string& value);
  /// The same as appendKey().
  void append(std::string_view from, std::string_view key, const std::string& value);
  /// Replaces our list `key` by these values.
  void setList(std::string_view from, std::string_view key, const Texts& values);

  /// Imports the foreign size `key` as resources.memory, if the document has it.
  void takeMemory(std::string_view key);
  /// Adds hosts of the foreign `key` to network.allowed_hosts and reports what became wider. Names of a local network
  /// also become private_hosts.
  void takeHosts(std::string_view key, const Texts& hosts);
  /// Sets the size of the tmpfs at `path`; reports the key `from` as lossy if the profile has no such tmpfs.
  void resizeTmpfs(std::string_view from, std::string_view path, std::uint64_t bytes);

  /// Returns the result, or the first error: an unknown key, a wrong type, a refused value, or an invalid policy.
  /// Clears Policy::widenings: the notes replace them.
  Result<Imported> finish();

 private:
  /// Reports what is wider than in the profile and was not reported yet.
  void noteWidenings();

  const Document& document_;
  ImportReader reader_;
  std::string profile_;
  std::map<std::string, std::string, std::less<>> origins_;  ///< our key -> the foreign one that first set it
  Imported result_;
  std::optional<Error> failure_;
};

/// What an import may make of a path that the foreign document shows.
struct ShownPath {
  std::string_view why_not;    ///< empty: it may be shown
  bool only_readable = false;  ///< programs of the host start from it or read it as their settings
};
/// Judges a host path by its name. `writable`: the document wants to write there.
ShownPath judgeShownPath(const std::string& path, bool writable);

/// Converts "*.example.org" of other sandboxes to our pattern for the name and its subdomains.
std::string hostPattern(const std::string& host);

// One function per shape.
void importAgent(ImportBuilder& in);         ///< {"sandbox": {"bash": ..., "images": ...}}
void importCompose(ImportBuilder& in);       ///< services.sandbox of a container template
void importDocker(ImportBuilder& in);        ///< [sandbox] with image, timeout, memory_limit ...
void importRfc(ImportBuilder& in);           ///< isolationLevel, filesystem, process, network, resources, syscalls
void importCargo(ImportBuilder& in);         ///< the fragments of a cargo sandbox
void importSrt(ImportBuilder& in);           ///< network.allowedDomains, filesystem.allowWrite ...
void importDevcontainer(ImportBuilder& in);  ///< devcontainer.json

}  // namespace caisson::policy
