#include "image_store/layer_record.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr std::size_t kMaxWalkDepth = 160;  // beyond any depth that LayerWriter creates
constexpr std::size_t kMaxProblems = 1000;
constexpr std::size_t kRecordPart = 256U << 10;
constexpr std::size_t kMaxRecordLine = 1U << 20;  // beyond any path that LayerWriter creates

void appendEscaped(std::string& out, std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7F && c != '%') {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15U];
    }
  }
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    unsigned value = 0;
    if (at + 3 > text.size()) return std::nullopt;
    const auto parsed = std::from_chars(text.data() + at + 1, text.data() + at + 3, value, 16);
    if (parsed.ptr != text.data() + at + 3) return std::nullopt;
    out += static_cast<char>(value);
    at += 2;
  }
  return out;
}

bool isOpaque(int directory) {
  char value = 0;
  return ::fgetxattr(directory, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

/// Visits every entry below a directory in the order of their paths' components, without following links.
class LayerWalk {
 public:
  /// `parent` and `name` lead to the entry; `status` is its lstat.
  using Visit = std::function<Result<void>(int parent, const std::string& name, const struct stat& status,
                                           const std::string& path, bool opaque)>;

  explicit LayerWalk(Visit visit) : visit_(std::move(visit)) {}

  Result<void> directory(int parent, const std::string& name, const std::string& path, std::size_t depth) {
    const int raw = ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (raw < 0) return fail(sysError(Stage::state, "open", path, errno));
    const std::unique_ptr<DIR, CloseDirectory> open(::fdopendir(raw));
    if (!open || depth > kMaxWalkDepth) return fail(sysError(Stage::state, "read", path, open ? ELOOP : errno));
    std::vector<std::string> names;
    while (const dirent* item = ::readdir(open.get())) {
      const std::string_view text = item->d_name;
      if (text != "." && text != "..") names.emplace_back(text);
    }
    std::ranges::sort(names);
    for (const std::string& child : names) {
      struct stat status{};
      const std::string whole = path.empty() ? child : path + "/" + child;
      if (::fstatat(raw, child.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return fail(sysError(Stage::state, "stat", whole, errno));
      bool opaque = false;
      if (S_ISDIR(status.st_mode)) {
        const sys::Fd below(::openat(raw, child.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        opaque = below && isOpaque(below.get());
      }
      if (auto visited = visit_(raw, child, status, whole, opaque); !visited) return visited;
      if (!S_ISDIR(status.st_mode)) continue;
      if (auto below = directory(raw, child, whole, depth + 1); !below) return below;
    }
    return {};
  }

 private:
  Visit visit_;
};

Result<std::string> linkTarget(int parent, const std::string& name) {
  std::string text(4096, '\0');
  const ssize_t length = ::readlinkat(parent, name.c_str(), text.data(), text.size());
  if (length < 0) return fail(sysError(Stage::state, "readlink", name, errno));
  text.resize(static_cast<std::size_t>(length));
  return text;
}

char typeLetter(const struct stat& status, bool opaque) {
  if (S_ISREG(status.st_mode)) return 'f';
  if (S_ISDIR(status.st_mode)) return opaque ? 'D' : 'd';
  if (S_ISLNK(status.st_mode)) return 'l';
  return S_ISCHR(status.st_mode) && status.st_rdev == 0 ? 'w' : '?';
}

Result<std::string> hashFile(int parent, const std::string& name, const std::function<void(std::size_t)>& count) {
  const sys::Fd file(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return fail(sysError(Stage::state, "open", name, errno));
  Sha256 hash;
  std::vector<char> buffer(256U << 10);
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::state, "read", name, errno));
    if (got == 0) return hex(hash.finish());
    hash.add(buffer.data(), static_cast<std::size_t>(got));
    count(static_cast<std::size_t>(got));
  }
}

/// What differs between the file and its line in the record; "" if nothing.
Result<std::string> compareEntry(const RecordLine& line, int parent, const struct stat& status, bool opaque,
                                 const std::string& name, const std::function<void(std::size_t)>& count) {
  const char type = typeLetter(status, opaque);
  if (type != line.type) return std::string("another type of file");
  if (type == 'l') {
    const auto target = linkTarget(parent, name);
    if (!target) return fail(target.error());
    return std::string(*target == line.target ? "" : "another link target");
  }
  if (type == 'w') return std::string();
  if ((status.st_mode & 07777) != line.appliedMode()) return std::string("another mode");
  if (type != 'f') return std::string();
  if (static_cast<std::uint64_t>(status.st_size) != line.size) return std::string("another size");
  const auto hash = hashFile(parent, name, count);
  if (!hash) return fail(hash.error());
  return std::string(*hash == line.hash ? "" : "another content");
}

/// Whether LayerWalk visits `left` before `right`: a directory, what is below it, then names that continue its name.
bool visitedBefore(std::string_view left, std::string_view right) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return std::ranges::lexicographical_compare(left, right, {}, rank, rank);
}

Error damagedRecord() { return plainError(Stage::state, "image", "record", "the record of a layer is damaged"); }

/// The lines of a record, one at a time.
class RecordReader {
 public:
  explicit RecordReader(const RecordSource& source) : source_(source) {}

  /// The line that next() read; nothing at the end.
  [[nodiscard]] const std::optional<RecordLine>& line() const { return line_; }

  Result<void> next() {
    std::size_t end = 0;
    while ((end = buffer_.find('\n', at_)) == std::string::npos) {
      buffer_.erase(0, std::exchange(at_, 0));
      const auto part = source_();
      if (!part) return fail(part.error());
      if (part->empty() && buffer_.empty()) {
        line_.reset();
        return {};
      }
      if (part->empty() || buffer_.size() > kMaxRecordLine) return fail(damagedRecord());
      buffer_ += *part;
    }
    auto parsed = RecordLine::parse(std::string_view(buffer_).substr(at_, end - at_));
    if (!parsed) return fail(parsed.error());
    at_ = end + 1;
    line_ = std::move(*parsed);
    return {};
  }

 private:
  const RecordSource& source_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::optional<RecordLine> line_;
};

}  // namespace

std::string RecordLine::written() const {
  std::string out = format("{} {} {} {} {} {} ", std::string(1, type), octal(mode), uid, gid, size, hash);
  appendEscaped(out, path);
  if (!target.empty()) {
    out += ' ';
    appendEscaped(out, target);
  }
  return out + "\n";
}

Result<RecordLine> RecordLine::parse(std::string_view line) {
  const auto parts = split(line, ' ');
  RecordLine result;
  const auto number = [](std::string_view text, auto& value, int base) {
    return std::from_chars(text.begin(), text.end(), value, base).ptr == text.end();
  };
  const bool known = (parts.size() == 7 || parts.size() == 8) && parts[0].size() == 1 &&
                     number(parts[1], result.mode, 8) && number(parts[2], result.uid, 10) &&
                     number(parts[3], result.gid, 10) && number(parts[4], result.size, 10);
  const auto path = known ? unescaped(parts[6]) : std::nullopt;
  const auto target = known && parts.size() == 8 ? unescaped(parts[7]) : std::string();
  if (!path || !target) return fail(damagedRecord());
  result.type = parts[0][0];
  result.hash = parts[5];
  result.path = *path;
  result.target = *target;
  return result;
}

std::uint32_t RecordLine::appliedMode() const {
  if (type == 'd' || type == 'D') return (mode & 01777U) | 0700U;
  return (mode & 0777U) | 0400U;
}

Result<void> describeLayer(const sys::RootDir& root, const std::unordered_map<ino_t, OriginalFile>& originals,
                           std::uint64_t max_bytes, const RecordSink& sink) {
  std::string part;
  std::uint64_t bytes = 0;
  LayerWalk walk([&](int parent, const std::string& name, const struct stat& status, const std::string& path,
                     bool opaque) -> Result<void> {
    RecordLine line{.type = typeLetter(status, opaque), .mode = status.st_mode & 07777U, .hash = "-", .path = path};
    if (const auto known = originals.find(status.st_ino); known != originals.end() && line.type != 'w') {
      line.mode = known->second.mode;
      line.uid = known->second.uid;
      line.gid = known->second.gid;
      if (line.type == 'f') line.hash = hex(known->second.digest);
    }
    if (line.type == 'f') line.size = static_cast<std::uint64_t>(status.st_size);
    if (line.type == 'l') {
      auto target = linkTarget(parent, name);
      if (!target) return fail(target.error());
      line.target = std::move(*target);
    }
    const std::string text = line.written();
    if (text.size() > max_bytes - bytes) {
      return fail(plainError(Stage::state, "unpack", "image layer",
                             "the paths of its files take more than " + std::to_string(max_bytes >> 20U) + " MiB",
                             "the archive is damaged or hostile"));
    }
    bytes += text.size();
    part += text;
    if (part.size() < kRecordPart) return {};
    auto written = sink(part);
    part.clear();
    return written;
  });
  if (auto walked = walk.directory(root.descriptor(), ".", "", 0); !walked) return walked;
  return sink(part);
}

Result<std::vector<VerifyProblem>> verifyLayer(const sys::RootDir& root, const RecordSource& record,
                                               const std::function<void(std::uint64_t)>& progress) {
  RecordReader expected(record);
  if (auto read = expected.next(); !read) return fail(read.error());
  std::vector<VerifyProblem> problems;
  std::uint64_t bytes = 0;
  const auto note = [&](const std::string& path, std::string what) {
    if (problems.size() < kMaxProblems) problems.push_back({path, std::move(what)});
  };
  /// Lines of entries that the walk did not find before `path`; all others without it.
  const auto skipMissing = [&](const std::string* path) -> Result<void> {
    while (expected.line() && (path == nullptr || visitedBefore(expected.line()->path, *path))) {
      note(expected.line()->path, "missing");
      if (auto read = expected.next(); !read) return read;
    }
    return {};
  };
  LayerWalk walk([&](int parent, const std::string& name, const struct stat& status, const std::string& path,
                     bool opaque) -> Result<void> {
    if (auto skipped = skipMissing(&path); !skipped) return skipped;
    if (!expected.line() || expected.line()->path != path) {
      note(path, "not in the image");
      return {};
    }
    const auto count = [&](std::size_t got) {
      bytes += got;
      if (progress) progress(bytes);
    };
    auto difference = compareEntry(*expected.line(), parent, status, opaque, name, count);
    if (!difference) return fail(difference.error());
    if (!difference->empty()) note(path, std::move(*difference));
    return expected.next();
  });
  if (auto walked = walk.directory(root.descriptor(), ".", "", 0); !walked) return fail(walked.error());
  if (auto skipped = skipMissing(nullptr); !skipped) return fail(skipped.error());
  return problems;
}

}  // namespace caisson::image
