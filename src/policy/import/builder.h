// Shared by all importers: the foreign document, the resulting policy, and the report.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/import/import.h"
#include "policy/import/reader.h"
#include "policy/rules/denied_names.h"

namespace caisson::policy {

class ImportBuilder {
 public:
  using Kind = ImportNote::Kind;
  using Texts = std::vector<std::string>;

  /// The import starts from a built-in profile, which decides every key that the document does not set. `workspace`:
  /// see importPolicy().
  ImportBuilder(const Document& document, std::string_view shape, std::string_view profile, std::string_view workspace);

  ImportReader& reader() { return reader_; }
  Policy& policy();
  /// The directory that becomes the workspace; "" if it is not known.
  [[nodiscard]] const std::string& workspace() const { return workspace_; }

  /// Adds a remark about the foreign `key` to the report.
  void note(Kind kind, std::string_view key, std::string text);
  /// Reports that the foreign key `from` makes our key `ours` wider, in place of the sentence of finish().
  void widen(std::string_view from, std::string_view ours, std::string text);
  /// The same, where the sentence about another of our keys covers `ours`, too.
  void markReported(std::string_view from, std::string_view ours) { explained_.emplace(ours, from); }
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
  /// Adds what append() collected: each addition to a list copies the list.
  void flush(std::string_view key);
  /// Reports what is wider than in the profile and was not reported yet, at each foreign key that set it.
  void noteWidenings();

  const Document& document_;
  ImportReader reader_;
  std::string profile_, workspace_;
  using KeyPair = std::pair<std::string, std::string>;
  std::set<KeyPair> origins_;    ///< our key and a foreign one that set it
  std::set<KeyPair> explained_;  ///< those that widen() reported
  struct Additions {
    std::string from;  ///< the foreign key of the first
    Texts values;
  };
  std::map<std::string, Additions, std::less<>> additions_;  ///< by our key
  Imported result_;
  std::optional<Error> failure_;
};

/// A path of a foreign document without what means all that is in a directory: "conf/", "conf/*" and "conf/**" become
/// "conf", "**" becomes ".".
std::string withoutAllBelow(std::string path);

/// Whether a path has wildcards that entries of filesystem.denied have.
bool hasWildcards(std::string_view path);

/// What an absolute path or pattern of a foreign document means in the workspace.
struct WorkspacePart {
  bool whole = false;          ///< the workspace itself, or a directory above it
  ImportBuilder::Texts below;  ///< paths and patterns relative to it
};
/// `path` names the workspace as /workspace, or by its path on the host if that is known.
WorkspacePart partOfWorkspace(const std::string& path, const std::string& workspace);

/// Whether a path or pattern of a foreign document is longer than the kernel accepts. The time to judge one depends on
/// its length, so it is refused first.
bool isLongerThanAPath(const std::string& path);

/// Whether an entry can mean `directory`, what is above it, or something in it.
bool concerns(const DeniedEntry& entry, const std::string& directory);

/// Whether an option of a container's `security_opt` gives up a protection: "seccomp=unconfined", "label:disable".
bool weakensSecurity(std::string_view option);

/// Whether a user of a container is root: "root", "0", "0:0".
bool isRootUser(std::string_view user);

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
