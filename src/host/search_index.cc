#include "host/search_index.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/path_parts.h"
#include "sys/build_id.h"
#include "sys/fd.h"
#include "sys/state_home.h"

namespace caisson::host {
namespace {

constexpr std::uint64_t kMagic = 0x3278646e69736163;  // "casindx2"
constexpr std::size_t kMaxFile = 256U << 20;
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxIndexes = 200;
constexpr const char* kStateDirectory = "index";

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t checksum = 0;  ///< of all that follows, with the counts
  std::uint64_t rules = 0;
  std::uint64_t directories = 0, names = 0, tracked = 0, text = 0;
};
static_assert(std::has_unique_object_representations_v<Header>);
static_assert(std::has_unique_object_representations_v<SearchIndex::Directory>);
static_assert(std::has_unique_object_representations_v<SearchIndex::Name>);

std::uint64_t checksumOf(const Header& header, std::string_view rest) {
  Header counted = header;
  counted.checksum = 0;
  return hashOf(rest, hashOf({reinterpret_cast<const char*>(&counted), sizeof(counted)}));
}

template <class T>
void append(std::string& out, const std::vector<T>& all) {
  out.append(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(T));
}

template <class T>
bool take(std::string_view& data, std::uint64_t count, std::vector<T>& all) {
  if (count > data.size() / sizeof(T)) return false;
  all.resize(count);
  std::memcpy(all.data(), data.data(), count * sizeof(T));
  data.remove_prefix(count * sizeof(T));
  return true;
}

/// Whether a text can be the name of one file in a directory.
bool isName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && text != "." && text != ".." &&
         text.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace

std::uint64_t hashOf(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = seed ^ 0x9E3779B97F4A7C15ULL ^ text.size();
  const auto mix = [&hash](std::uint64_t word) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32U;
  };
  while (text.size() >= sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof(word));
    mix(word);
    text.remove_prefix(sizeof(word));
  }
  std::uint64_t last = 0;
  std::memcpy(&last, text.data(), text.size());
  mix(last);
  return hash;
}

SearchIndex::Text SearchIndex::add(std::string_view part) {
  const Text added{static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(part.size())};
  text += part;
  return added;
}

void SearchIndex::compact() {
  constexpr std::size_t kSmall = 4096;
  std::size_t used = 0;
  for (const Directory& one : directories) used += one.name.length;
  for (const Name& one : names) used += one.name.length + one.target.length;
  if (text.size() <= 2 * used + kSmall) return;
  const std::string before = std::exchange(text, {});
  const auto move = [&](Text& part) { part = add(std::string_view(before).substr(part.at, part.length)); };
  for (Directory& one : directories) move(one.name);
  for (Name& one : names) {
    move(one.name);
    move(one.target);
  }
}

std::string SearchIndex::serialized(std::uint64_t rules) const {
  std::string out(sizeof(Header), '\0');
  out.reserve(sizeof(Header) + directories.size() * sizeof(Directory) + names.size() * sizeof(Name) +
              tracked.size() * sizeof(std::uint64_t) + text.size());
  append(out, directories);
  append(out, names);
  append(out, tracked);
  out += text;
  Header header{.rules = rules,
                .directories = directories.size(),
                .names = names.size(),
                .tracked = tracked.size(),
                .text = text.size()};
  header.checksum = checksumOf(header, std::string_view(out).substr(sizeof(Header)));
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

std::optional<SearchIndex> SearchIndex::parse(std::string_view data, std::uint64_t rules) {
  Header header;
  if (data.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, data.data(), sizeof(header));
  data.remove_prefix(sizeof(header));
  if (header.magic != kMagic || header.rules != rules || header.checksum != checksumOf(header, data)) {
    return std::nullopt;
  }
  SearchIndex index;
  if (!take(data, header.directories, index.directories) || !take(data, header.names, index.names) ||
      !take(data, header.tracked, index.tracked) || data.size() != header.text) {
    return std::nullopt;
  }
  index.text = data;
  if (!index.isValid()) return std::nullopt;
  return index;
}

/// Anybody can compute the checksum: the data may be anything.
bool SearchIndex::isValid() const {
  const auto inText = [&](Text part) { return part.length <= text.size() && part.at <= text.size() - part.length; };
  const auto in = [](std::uint32_t first, std::uint32_t count, std::size_t size) {
    return count <= size && first <= size - count;
  };
  if (directories.empty() || directories.size() >= kNone || names.size() >= kNone) return false;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    const Directory& one = directories[i];
    if (!inText(one.name) || (i > 0 && !isName(view(one.name)))) return false;
    if (!in(one.first_directory, one.directories, directories.size()) || !in(one.first_name, one.names, names.size())) {
      return false;
    }
    if (one.directories > 0 && one.first_directory <= i) return false;  // a circle
  }
  for (const Name& one : names) {
    if (!inText(one.name) || !inText(one.target) || !isName(view(one.name))) return false;
    if (one.kind > Kind::other_name || one.verdict > Verdict::harmless_in_git) return false;
  }
  return std::ranges::is_sorted(tracked);
}

std::map<std::string, std::uint64_t> SearchIndex::paths() const {
  std::map<std::string, std::uint64_t> paths;
  std::vector<std::string> known(directories.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const SearchIndex::Directory& one = directories[i];
    if (one.state.inode == 0) continue;
    for (std::uint32_t below = one.first_directory; below < one.first_directory + one.directories; ++below) {
      known[below] = join(known[i], view(directories[below].name));
    }
    paths.emplace(known[i], one.state.inode);
  }
  return paths;
}

IndexFile::IndexFile(int workspace, const std::string& path, std::string_view rules) {
  struct stat status{};
  if (::fstat(workspace, &status) != 0) return;
  std::string what(rules);
  what += '\0';
  what += std::to_string(::geteuid());
  rules_ = hashOf(sys::buildId(), hashOf(what));
  const std::uint64_t key = hashOf(path, hashOf(what) ^ status.st_ino ^ (status.st_dev << 32U));
  char name[17];
  std::snprintf(name, sizeof(name), "%016llx", static_cast<unsigned long long>(key));
  name_ = name;
}

std::optional<SearchIndex> IndexFile::load() const {
  const std::string home = sys::stateHome();
  if (name_.empty() || home.empty()) return std::nullopt;
  // Not created: a plan writes nothing. Opened as the state directory that it is, so that its owner is checked.
  if (::access((home + "/" + kStateDirectory).c_str(), F_OK) != 0) return std::nullopt;
  auto directory = sys::openStateDirectory(kStateDirectory);
  if (!directory) return std::nullopt;
  const sys::Fd file(::openat(directory->get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 || static_cast<std::size_t>(status.st_size) > kMaxFile) {
    return std::nullopt;
  }
  std::string data(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < data.size()) {
    const ssize_t got = ::read(file.get(), data.data() + size, data.size() - size);
    if (got <= 0) return std::nullopt;
    size += static_cast<std::size_t>(got);
  }
  return SearchIndex::parse(data, rules_);
}

void IndexFile::save(const SearchIndex& index) const {
  if (name_.empty()) return;
  auto directory = sys::openStateDirectory(kStateDirectory);
  if (!directory) return;
  const auto root = sys::RootDir::adopt(*std::move(directory), {.known_as = "/"});
  if (!root) return;
  const std::string data = index.serialized(rules_);
  if (data.size() > kMaxFile) return;
  const auto known = root->list("");
  if (known && known->size() >= kMaxIndexes) {  // of workspaces that may be gone; each can be made again
    for (const sys::DirectoryEntry& one : *known) (void)root->remove(one.name);
  }
  (void)root->replaceFile(name_, data, 0600);
}

bool hasReliableTimes(int directory) {
  struct statfs info{};
  if (::fstatfs(directory, &info) != 0) return false;
  constexpr unsigned long kReliable[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
                                         TMPFS_MAGIC,      0x2FC12FC1 /* zfs */, 0xCA451A4E /* bcachefs */};
  return std::ranges::find(kReliable, static_cast<unsigned long>(info.f_type)) != std::end(kReliable);
}

}  // namespace caisson::host
