#include "image_store/build/sbom.h"

#include <algorithm>
#include <vector>

#include "base/json_writer.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr std::uint64_t kMaxDatabase = 64U << 20;
constexpr std::size_t kMaxPackages = 100'000;  // Debian has fewer; a command of a build may have written the database

struct Package {
  std::string name, version, kind;
};

/// The file's content; empty if the image does not have it.
std::string readFrom(const MergedView& image, const std::string& path) {
  const auto real = image.resolve(path);
  const auto entry = real ? image.find(*real) : std::nullopt;
  if (!entry || entry->info.type != sys::FileType::regular) return "";
  return image.layer(entry->layer).readFile(*real, kMaxDatabase).value_or("");
}

/// Records of lines `KEY<separator>VALUE`, ended by empty lines.
void addRecords(const std::string& text, std::string_view name_key, std::string_view version_key,
                const std::string& kind, std::vector<Package>& packages) {
  Package package{.kind = kind};
  std::string_view rest = text;
  while (!rest.empty() && packages.size() < kMaxPackages) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with(name_key)) package.name = trimmed(line.substr(name_key.size()));
    if (line.starts_with(version_key)) package.version = trimmed(line.substr(version_key.size()));
    if (!line.empty() && !rest.empty()) continue;
    if (!package.name.empty()) packages.push_back(package);
    package = {.kind = kind};
  }
}

}  // namespace

std::string softwareBill(const MergedView& image, const std::string& identity, const std::string& created) {
  std::vector<Package> packages;
  addRecords(readFrom(image, "var/lib/dpkg/status"), "Package:", "Version:", "deb", packages);
  addRecords(readFrom(image, "lib/apk/db/installed"), "P:", "V:", "apk", packages);
  std::ranges::sort(packages, {}, &Package::name);
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("spdxVersion").string("SPDX-2.3").key("dataLicense").string("CC0-1.0");
  json.key("SPDXID").string("SPDXRef-DOCUMENT").key("name").string(identity);
  json.key("documentNamespace").string("https://caisson.invalid/spdx/" + identity);
  json.key("creationInfo")
      .beginObject()
      .key("created")
      .string(created)
      .key("creators")
      .beginArray()
      .string("Tool: caisson")
      .end()
      .end();
  json.key("packages").beginArray();
  std::size_t number = 0;
  for (const Package& package : packages) {
    json.beginObject()
        .key("SPDXID")
        .string("SPDXRef-Package-" + std::to_string(++number))
        .key("name")
        .string(package.name);
    json.key("versionInfo").string(package.version).key("downloadLocation").string("NOASSERTION");
    json.key("externalRefs").beginArray().beginObject().key("referenceCategory").string("PACKAGE-MANAGER");
    json.key("referenceType")
        .string("purl")
        .key("referenceLocator")
        .string("pkg:" + package.kind + "/" + package.name + "@" + package.version);
    json.end().end().end();
  }
  return json.end().end().text() + "\n";
}

}  // namespace caisson::image
