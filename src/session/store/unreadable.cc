#include "session/store/unreadable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace caisson::session {
namespace {

constexpr const char* kFamilyFile = "family";
constexpr std::size_t kIdBytes = 35;
constexpr std::size_t kBeginBytes = std::size_t{64} * 1024;  // of meta.json; the family comes before the long members

/// The family in the text of metadata. Quotes inside a JSON string are escaped, so this cannot match within one.
std::optional<std::string> familyInText(const sys::RootDir& session) {
  constexpr std::string_view kMember = "\"family\":\"";
  const auto file = session.openFile("meta.json", {.flags = O_RDONLY});
  if (!file) return std::nullopt;
  std::string text(kBeginBytes, '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t at = text.find(kMember);
  if (at == std::string::npos) return std::nullopt;
  std::string family = text.substr(at + kMember.size(), kIdBytes);
  return isId(family) ? std::optional(std::move(family)) : std::nullopt;
}

}  // namespace

void writeFamily(const sys::RootDir& session, const std::string& family) {
  const auto file = session.openFile(kFamilyFile, {.flags = O_WRONLY | O_CREAT | O_TRUNC, .mode = 0600});
  if (file) (void)!::write(file->get(), family.data(), family.size());
}

std::optional<std::string> familyOf(const sys::RootDir& session, MetadataCache& cache) {
  if (auto family = session.readFile(kFamilyFile, kIdBytes); family && isId(*family)) return *std::move(family);
  if (const auto metadata = cache.read(session)) return metadata->family;
  return familyInText(session);
}

bool isDamage(const Error& error) {
  return error.sys_errno == 0 || error.sys_errno == ENOENT || error.sys_errno == EFBIG;
}

double secondsUnchanged(const sys::RootDir& session) {
  struct stat status;
  if (::fstat(session.descriptor(), &status) != 0) return 0;
  return std::max(0.0, std::difftime(std::time(nullptr), status.st_mtime));
}

std::map<std::string, std::string> namesById(const SessionPaths& paths, const char* names) {
  std::map<std::string, std::string> found;
  const auto entries = paths.sessions().list(names);
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>{}) {
    if (entry.name.starts_with('.')) continue;
    if (auto id = paths.sessions().readFile(std::string(names) + "/" + entry.name, kIdBytes)) {
      found.emplace(*std::move(id), entry.name);
    }
  }
  return found;
}

}  // namespace caisson::session
