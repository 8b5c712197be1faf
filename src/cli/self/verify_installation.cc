#include "cli/self/verify_installation.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "approval/owner.h"
#include "base/json_writer.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/self/verbs.h"
#include "image_store/public_key.h"
#include "sys/own_file.h"
#include "sys/root_dir.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kFolder = "share/caisson";
constexpr std::string_view kPrograms = "libexec/caisson";
constexpr std::string_view kName = "MANIFEST";
constexpr std::string_view kSignatureEnding = ".sig";
constexpr std::uint64_t kMaxManifest = 4U << 20;
constexpr std::uint64_t kMaxSignature = 4096;
constexpr std::size_t kMaxKey = 64U << 10;

struct Key {
  std::string file, text;
};

/// One manifest: that of the main package, or MANIFEST.PART of a package beside it.
struct Manifest {
  std::string file;
  std::size_t files = 0;
  std::string signature;  ///< valid, invalid, missing or not_checked
  std::string key;        ///< the file of the key that made a valid signature
};

struct Report {
  std::string prefix;
  std::vector<Manifest> manifests;
  std::set<std::string> listed;
  std::vector<std::string> changed, missing, unreadable;
  std::vector<std::string> added;  ///< programs that caisson would start, and that no manifest lists

  [[nodiscard]] bool passed() const {
    for (const Manifest& manifest : manifests)
      if (manifest.signature == "invalid" || manifest.signature == "missing") return false;
    return changed.empty() && missing.empty() && unreadable.empty() && added.empty();
  }
};

Result<Key> readKey(const std::string& path) {
  std::error_code problem;
  // No link in any component is accepted, so a path from the command line is resolved first.
  const std::string resolved = std::filesystem::canonical(path, problem).string();
  if (problem) return fail(sysError(Stage::usage, "realpath", path, problem.value(), "name the file of a public key"));
  const auto file = sys::openOwnFile(resolved, sys::Privacy::unchanging);
  if (!file) return fail(file.error());
  std::string text(kMaxKey, '\0');
  const ssize_t got = ::read(file->get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (!image::isPublicKey(text))
    return fail(
        plainError(Stage::usage, "key", path, "not a public key", "expected PEM, as `openssl pkey -pubout` writes it"));
  return Key{path, std::move(text)};
}

/// The keys to accept: that of the command line, or release.pub of the owner's configuration. Never one from the
/// installation: an attacker who replaces its files replaces that too.
Result<std::vector<Key>> keysFor(const Arguments& arguments) {
  std::vector<Key> keys;
  if (const auto given = arguments.value(kSelfKey)) {
    auto key = readKey(std::string(*given));
    if (!key) return fail(key.error());
    keys.push_back(*std::move(key));
    return keys;
  }
  for (const std::string& directory : {std::string("/etc/caisson"), approval::userConfigDirectory()}) {
    const std::string path = directory + "/release.pub";
    if (directory.empty() || ::access(path.c_str(), F_OK) != 0) continue;
    auto key = readKey(path);
    if (!key) return fail(key.error());
    keys.push_back(*std::move(key));
  }
  return keys;
}

/// Returns the digest of a file, hashed in pieces.
Result<Digest> digestOf(const sys::RootDir& root, std::string_view path) {
  const auto file = root.openFile(path, {});
  if (!file) return fail(file.error());
  Sha256 hash;
  std::vector<char> buffer(1U << 18);
  ssize_t got = 0;
  while ((got = ::read(file->get(), buffer.data(), buffer.size())) > 0)
    hash.add(buffer.data(), static_cast<std::size_t>(got));
  if (got < 0) return fail(sysError(Stage::state, "read", path, errno));
  return hash.finish();
}

void checkFile(const sys::RootDir& root, const std::string& path, const Digest& expected, Report& report) {
  const auto info = root.stat(path);
  if (!info) {
    (info.error().sys_errno == ENOENT ? report.missing : report.unreadable).push_back(path);
    return;
  }
  // A link in place of a file is a change.
  if (info->type != sys::FileType::regular) return report.changed.push_back(path);
  const auto digest = digestOf(root, path);
  if (!digest) return report.unreadable.push_back(path);
  if (*digest != expected) report.changed.push_back(path);
}

Result<void> checkManifest(const sys::RootDir& root, const std::string& file, const std::vector<Key>& keys,
                           Report& report) {
  const auto text = root.readFile(file, kMaxManifest);
  if (!text) return fail(text.error());
  Manifest manifest{.file = file, .signature = "not_checked", .key = {}};
  if (!keys.empty()) {
    const auto signature = root.readFile(file + std::string(kSignatureEnding), kMaxSignature);
    manifest.signature = signature ? "invalid" : "missing";
    for (const Key& key : keys) {
      if (!signature || !image::verifySignature(key.text, *text, *signature)) continue;
      manifest.signature = "valid";
      manifest.key = key.file;
      break;
    }
  }
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty()) continue;
    Digest expected;
    // The format of sha256sum: 64 digits, two spaces, the path.
    if (line.size() < 67 || line.substr(64, 2) != "  " || !readHex(line.substr(0, 64), expected))
      return fail(plainError(Stage::state, "manifest", file, "a line is not in the format of sha256sum",
                             "install the package again"));
    ++manifest.files;
    const std::string path(line.substr(66));
    checkFile(root, path, expected, report);
    report.listed.insert(path);
  }
  report.manifests.push_back(std::move(manifest));
  return {};
}

Result<Report> checkPrefix(const std::string& prefix, const std::vector<Key>& keys) {
  Report report{.prefix = prefix};
  const auto root = sys::RootDir::open(prefix);
  if (!root) return fail(root.error());
  const auto entries = root->list(kFolder);
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>{}) {
    const std::string_view name = entry.name;
    if (!name.starts_with(kName) || name.ends_with(kSignatureEnding)) continue;
    if (name.size() > kName.size() && name[kName.size()] != '.') continue;
    if (auto checked = checkManifest(*root, std::string(kFolder) + "/" + entry.name, keys, report); !checked)
      return fail(checked.error());
  }
  if (report.manifests.empty() || report.manifests.front().file != std::string(kFolder) + "/" + std::string(kName))
    return fail(plainError(Stage::state, "self verify", prefix + "/" + std::string(kFolder) + "/" + std::string(kName),
                           "this caisson was not installed from a package: it has no manifest",
                           "install a package of `make dist`; docs/install.md"));
  const auto programs = root->list(kPrograms);
  for (const sys::DirectoryEntry& entry : programs ? *programs : std::vector<sys::DirectoryEntry>{}) {
    std::string path = std::string(kPrograms) + "/" + entry.name;
    if (!report.listed.contains(path)) report.added.push_back(std::move(path));
  }
  return report;
}

void appendList(std::string& out, std::string_view title, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) out += std::string(title) + ": " + safeLine(path) + "\n";
}

std::string asText(const Report& report) {
  std::string out;
  appendList(out, "changed", report.changed);
  appendList(out, "missing", report.missing);
  appendList(out, "unreadable", report.unreadable);
  appendList(out, "added", report.added);
  std::size_t files = 0;
  for (const Manifest& manifest : report.manifests) files += manifest.files;
  const std::size_t bad = report.changed.size() + report.missing.size() + report.unreadable.size();
  out += report.prefix + ": " + std::to_string(files - bad) + " of " + std::to_string(files) + " files match\n";
  for (const Manifest& manifest : report.manifests) {
    out += "signature of " + manifest.file + ": ";
    if (manifest.signature == "valid") {
      out += "valid, by " + safeLine(manifest.key) + "\n";
    } else if (manifest.signature == "not_checked") {
      out += "not checked: name a key with --key FILE\n";
    } else {
      out += manifest.signature + "\n";
    }
  }
  return out;
}

std::string asJson(const Report& report) {
  JsonWriter json;
  json.beginObject().key("passed").boolean(report.passed()).key("prefix").string(report.prefix);
  json.key("manifests").beginArray();
  for (const Manifest& manifest : report.manifests) {
    json.beginObject().key("file").string(manifest.file).key("files").number(manifest.files);
    json.key("signature").string(manifest.signature).key("key");
    manifest.key.empty() ? json.null() : json.string(manifest.key);
    json.end();
  }
  json.end().key("changed").strings(report.changed).key("missing").strings(report.missing);
  json.key("unreadable").strings(report.unreadable).key("added").strings(report.added).end();
  return json.text() + "\n";
}

}  // namespace

int verifyInstallation(std::span<char* const> line) {
  const auto arguments = parse(kSelfVerify.syntax, line.subspan(3));
  if (!arguments) return printError(arguments.error());
  const auto keys = keysFor(*arguments);
  if (!keys) return printError(keys.error());
  const std::string prefix = std::filesystem::path(line[0]).parent_path().parent_path().string();
  const auto report = checkPrefix(prefix, *keys);
  if (!report) return printError(report.error());
  const int printed = print(arguments->has(kSelfJson) ? asJson(*report) : asText(*report));
  return printed != 0 ? printed : report->passed() ? 0 : 1;
}

}  // namespace caisson::cli
