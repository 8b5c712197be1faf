#include "host/tree_writers.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "host/written_trees.h"
#include "plan/workspace.h"
#include "sys/file_lock.h"
#include "sys/no_file_size_signal.h"
#include "sys/process_start.h"
#include "sys/random_hex.h"

namespace caisson::host {
namespace {

using sys::Fd;
using sys::RootDir;

constexpr const char* kWriters = "writers";
constexpr const char* kWritersLock = "lock";
constexpr std::uint64_t kMaxWriterRecord = 64U << 20U;
constexpr std::size_t kMaxWriterRecords = 100'000;
constexpr std::string_view kWriterVersion = "caisson writer 2", kFirstVersion = "caisson writer 1";
constexpr std::size_t kWriterNameBytes = 16;

/// The content of a record: fields that end with NUL, which no path contains.
struct WriterRecord {
  bool ended = false;
  std::string path;
  sys::FileIdentity tree;
  std::vector<std::string> above;  ///< FileIdentity::text() of the directories that the tree is in, innermost first
  pid_t init = 0;
  std::uint64_t init_start = 0;
  bool stored = false;  ///< what follows is known: the program may have started
  std::vector<std::string> patterns;
  std::vector<ProtectedFile> before;
  bool judgement_known = true;  ///< false: what follows is missing in the first version
  std::vector<plan::CalledFile> called;
  std::vector<plan::GitDirectory> git_directories;
  std::string around;
  std::vector<std::string> programs;

  [[nodiscard]] TreeJudgement judgement() const { return {patterns, around, programs}; }
};

class FieldWriter {
 public:
  void add(std::string_view text) { (text_ += text) += '\0'; }
  void add(std::uint64_t number) { add(std::to_string(number)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}
  std::string text() {
    const std::size_t end = rest_.find('\0');
    if (end == std::string_view::npos) {
      good_ = false;
      return {};
    }
    std::string field(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return field;
  }
  std::uint64_t number() {
    const std::string field = text();
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
    good_ = good_ && !field.empty() && problem == std::errc() && end == field.data() + field.size();
    return value;
  }
  /// A number of fields that follow, which the text is long enough for.
  std::size_t count() {
    const std::uint64_t value = number();
    good_ = good_ && value <= rest_.size();
    return good_ ? value : 0;
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool atEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::string recordText(const WriterRecord& record) {
  FieldWriter out;
  out.add(kWriterVersion);
  out.add(record.ended ? 1U : 0U);
  out.add(record.path);
  out.add(record.tree.text());
  out.add(record.above.size());
  for (const std::string& one : record.above) out.add(one);
  out.add(static_cast<std::uint64_t>(record.init));
  out.add(record.init_start);
  out.add(record.stored ? 1U : 0U);
  out.add(record.patterns.size());
  for (const std::string& one : record.patterns) out.add(one);
  out.add(record.before.size());
  for (const ProtectedFile& one : record.before) {
    out.add(one.path);
    out.add(one.target);
  }
  out.add(record.around);
  out.add(record.programs.size());
  for (const std::string& one : record.programs) out.add(one);
  out.add(record.called.size());
  for (const plan::CalledFile& one : record.called) {
    out.add(one.path);
    out.add(one.caller);
    out.add(one.state);
  }
  out.add(record.git_directories.size());
  for (const plan::GitDirectory& one : record.git_directories) {
    out.add(one.path);
    out.add(one.unwatched.size());
    for (const std::string& file : one.unwatched) out.add(file);
  }
  return out.take();
}

/// What is reported after the run.
void readReported(FieldReader& in, WriterRecord& record) {
  for (std::size_t left = in.count(); left > 0; --left) {
    plan::CalledFile& one = record.called.emplace_back();
    one.path = in.text();
    one.caller = in.text();
    one.state = in.text();
  }
  for (std::size_t left = in.count(); left > 0; --left) {
    plan::GitDirectory& one = record.git_directories.emplace_back();
    one.path = in.text();
    for (std::size_t files = in.count(); files > 0; --files) one.unwatched.insert(in.text());
  }
}

std::optional<WriterRecord> parseWriterRecord(std::string_view text) {
  FieldReader in(text);
  WriterRecord record;
  const std::string version = in.text();
  if (version != kWriterVersion && version != kFirstVersion) return std::nullopt;
  record.judgement_known = version == kWriterVersion;
  record.ended = in.number() == 1;
  record.path = in.text();
  const auto tree = sys::FileIdentity::read(in.text());
  for (std::size_t left = in.count(); left > 0; --left) record.above.push_back(in.text());
  record.init = static_cast<pid_t>(in.number());
  record.init_start = in.number();
  record.stored = in.number() == 1;
  for (std::size_t left = in.count(); left > 0; --left) record.patterns.push_back(in.text());
  for (std::size_t left = in.count(); left > 0; --left) {
    ProtectedFile& one = record.before.emplace_back();
    one.path = in.text();
    one.target = in.text();
  }
  if (record.judgement_known) {
    record.around = in.text();
    for (std::size_t left = in.count(); left > 0; --left) record.programs.push_back(in.text());
    readReported(in, record);
  }
  if (!in.good() || !in.atEnd() || !tree) return std::nullopt;
  record.tree = *tree;
  return record;
}

std::optional<WriterRecord> readWriterRecord(int file) {
  struct stat status{};
  if (::fstat(file, &status) != 0 || status.st_size < 0 ||
      static_cast<std::uint64_t>(status.st_size) > kMaxWriterRecord) {
    return std::nullopt;
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t have = 0; have < text.size();) {
    const ssize_t got = ::pread(file, text.data() + have, text.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return parseWriterRecord(text);
}

/// In place: the lock belongs to this file.
Result<void> writeWriterRecord(int file, const WriterRecord& record, const std::string& name) {
  const sys::NoFileSizeSignal no_signal;
  const std::string text = recordText(record);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t put = ::pwrite(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return fail(sysError(Stage::state, "write", name, put < 0 ? errno : ENOSPC));
    done += static_cast<std::size_t>(put);
  }
  if (::ftruncate(file, static_cast<off_t>(text.size())) != 0) {
    return fail(sysError(Stage::state, "ftruncate", name, errno));
  }
  return {};
}

bool mayStillRun(const WriterRecord& record) {
  return record.init > 0 && record.tree.boot == sys::bootId() && sys::stillRuns(record.init, record.init_start);
}

/// The open directory of the records, locked while this object lives.
class WriterRegistry {
 public:
  static Result<WriterRegistry> open() {
    auto state = openTreeState();
    if (!state) return fail(state.error());
    if (auto made = state->makeDirs(kWriters, 0700); !made) return fail(made.error());
    auto directory = state->enter(kWriters);
    if (!directory) return fail(directory.error());
    auto lock = directory->openFile(kWritersLock, {.flags = O_RDWR | O_CREAT, .mode = 0600});
    if (!lock) return fail(lock.error());
    const std::string path = state->knownAs() + "/" + kWriters;
    if (auto locked = sys::lockFile(lock->get(), sys::LockKind::exclusive, sys::kLockTimeout, path); !locked) {
      return fail(locked.error());
    }
    return WriterRegistry(*std::move(directory), *std::move(lock));
  }

  [[nodiscard]] const RootDir& directory() const { return directory_; }

  struct Entry {
    std::string name;
    Fd file;
    WriterRecord record;
    bool owned = false;  ///< another process has it locked
  };
  /// All readable records but `own`. Unowned ones are locked by this process.
  [[nodiscard]] Result<std::vector<Entry>> others(const std::string& own) const {
    auto names = directory_.list("", kMaxWriterRecords);
    if (!names) return fail(names.error());
    std::vector<Entry> entries;
    for (const sys::DirectoryEntry& one : *names) {
      if (one.name == kWritersLock || one.name == own) continue;
      auto file = directory_.openFile(one.name, {.flags = O_RDWR});
      if (!file) continue;
      const bool owned = ::flock(file->get(), LOCK_EX | LOCK_NB) != 0;
      auto record = readWriterRecord(file->get());
      if (record) {
        entries.push_back({one.name, *std::move(file), *std::move(record), owned});
      } else if (!owned) {
        (void)directory_.remove(one.name);  // cut short before its program started
      }
    }
    return entries;
  }

 private:
  WriterRegistry(RootDir directory, Fd lock) : directory_(std::move(directory)), lock_(std::move(lock)) {}

  RootDir directory_;
  Fd lock_;
};

/// Without the lock, since every run asks this.
bool mayHaveRecords() {
  for (const std::string& place : treeStatePlaces()) {
    const Fd directory(::open((place + "/" + kWriters).c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const auto root = directory ? RootDir::share(directory.get(), {}) : Result<RootDir>(fail(Error()));
    const auto names = root ? root->list("", 2) : Result<std::vector<sys::DirectoryEntry>>(fail(Error()));
    if (root && (!names || names->size() > 1 || (names->size() == 1 && names->front().name != kWritersLock)))
      return true;
  }
  return false;
}

bool isActive(const WriterRegistry::Entry& entry) {
  return !entry.record.ended && (entry.owned || mayStillRun(entry.record));
}

bool isAmong(const sys::FileIdentity& tree, const std::vector<std::string>& directories) {
  return std::ranges::any_of(directories, [&](const std::string& text) {
    const auto one = sys::FileIdentity::read(text);
    return one && sys::isSameFile(tree, *one);
  });
}

bool treesOverlap(const WriterRecord& one, const WriterRecord& other) {
  return sys::isSameFile(one.tree, other.tree) || isAmong(one.tree, other.above) || isAmong(other.tree, one.above);
}

/// The path in the tree of `other` of what is at `path` in the tree of `own`; nothing if it is not in there.
std::optional<std::string> pathIn(const WriterRecord& other, const WriterRecord& own, const std::string& path) {
  if (sys::isSameFile(own.tree, other.tree)) return path;
  const auto prefix = [](const std::string& inner, const std::string& outer) {
    const std::size_t top = outer == "/" ? 1 : outer.size() + 1;
    return inner.size() > top ? inner.substr(top) : std::string();
  };
  if (isAmong(other.tree, own.above)) return prefix(own.path, other.path) + "/" + path;
  const std::string inner = prefix(other.path, own.path) + "/";
  return path.starts_with(inner) ? std::optional(path.substr(inner.size())) : std::nullopt;
}

/// Whether the program of `other` may have made a file of the tree of `own`, at this path in its own tree, that it did
/// not find when it began. Not so if it would not have found that file protected: then the file may have been there.
class MayHaveMade {
 public:
  MayHaveMade(const WriterRecord& other, const WriterRecord& own)
      : other_(other),
        own_(own),
        judged_(other.path, other.judgement(), other.before),
        own_judged_(own.path, own.judgement(), {}) {}

  bool operator()(const ProtectedFile& file, const std::string& path) const {
    const bool link = !file.target.empty();
    if (!other_.judgement_known || judged_.covers(path, link)) return true;
    // By its place alone, as the files of a git directory: the other one judges by that as well.
    if (file.through.empty()) return !own_judged_.names(file.path, link);
    // By a link or a configuration. One in the tree of the other may be new, and its end is judged after that.
    if (!file.through.starts_with('/')) return pathIn(other_, own_, file.through).has_value();
    return plan::below(file.through, other_.path) || own_.around.empty() || !plan::below(file.through, own_.around);
  }

 private:
  const WriterRecord &other_, &own_;
  const JudgedFiles judged_, own_judged_;
};

/// Keeps of `files`, in the tree of `own`, those that `other` also knows, as far as it judges them.
void keepKnown(const WriterRecord& other, const WriterRecord& own, std::vector<ProtectedFile>& files) {
  std::set<std::pair<std::string_view, std::string_view>> known;
  for (const ProtectedFile& one : other.before) known.emplace(one.path, one.target);
  std::optional<MayHaveMade> may_have_made;  // its tables take long to build, and are needed rarely
  std::erase_if(files, [&](const ProtectedFile& one) {
    if (one.path.ends_with('/')) return false;  // a directory that nothing was written in: plan::GuardedTree
    const auto path = pathIn(other, own, one.path);
    if (!path || known.contains({*path, one.target})) return false;
    if (!may_have_made) may_have_made.emplace(other, own);
    return (*may_have_made)(one, *path);
  });
}

Result<WriterRecord> describeTree(int tree, const std::string& path) {
  WriterRecord record;
  record.path = path;
  auto identity = sys::identityOf(tree);
  if (!identity) return fail(identity.error());
  record.tree = *std::move(identity);
  Fd at(::fcntl(tree, F_DUPFD_CLOEXEC, 3));
  sys::FileIdentity last = record.tree;
  for (;;) {
    at = Fd(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at) return fail(sysError(Stage::state, "open", path + "/..", errno));
    auto above = sys::identityOf(at.get());
    if (!above) return fail(above.error());
    if (above->device == last.device && above->inode == last.inode) return record;  // "/"
    record.above.push_back(above->text());
    last = *std::move(above);
  }
}

}  // namespace

Result<std::shared_ptr<TreeWriter>> TreeWriter::begin(int tree, const std::string& path) {
  auto record = describeTree(tree, path);
  if (!record) return fail(record.error());
  const auto random = sys::randomHex(kWriterNameBytes);
  if (!random) return fail(sysError(Stage::state, "getrandom", path, errno));
  std::shared_ptr<TreeWriter> writer(new TreeWriter());  // outlives the lock: its end takes that as well
  auto registry = WriterRegistry::open();
  if (!registry) return fail(registry.error());
  auto others = registry->others("");
  if (!others) return fail(others.error());
  for (const WriterRegistry::Entry& one : *others) {
    if (one.record.ended) writer->ended_earlier_.insert(one.name);
  }
  auto file = registry->directory().openFile(*random, {.flags = O_RDWR | O_CREAT | O_EXCL, .mode = 0600});
  if (!file) return fail(file.error());
  writer->name_ = *random;
  writer->file_ = *std::move(file);
  if (::flock(writer->file_.get(), LOCK_EX | LOCK_NB) != 0) return fail(sysError(Stage::state, "flock", path, errno));
  if (auto written = writeWriterRecord(writer->file_.get(), *record, path); !written) return fail(written.error());
  return writer;
}

TreeWriter::~TreeWriter() {
  if (ended_ || stored_ || name_.empty()) return;
  if (auto registry = WriterRegistry::open()) (void)registry->directory().remove(name_);
}

Result<void> TreeWriter::store(const plan::GuardedTree& tree) {
  // What another writer may just have made counts as new, also if this process is killed.
  before_ = tree.before;
  if (auto kept = keepOld(before_); !kept) return kept;
  const auto registry = WriterRegistry::open();
  if (!registry) return fail(registry.error());
  auto record = readWriterRecord(file_.get());
  if (!record) return fail(plainError(Stage::state, "read", name_, "the record of this writer is damaged"));
  record->stored = true;
  record->patterns = tree.patterns;
  record->around = judgement_.around;
  record->programs = judgement_.programs;
  record->before = before_;
  record->called = tree.called;
  record->git_directories = tree.git_directories;
  if (auto written = writeWriterRecord(file_.get(), *record, name_); !written) return written;
  stored_ = true;
  return {};
}

Result<void> TreeWriter::setInit(pid_t init) {
  const auto registry = WriterRegistry::open();
  if (!registry) return fail(registry.error());
  auto record = readWriterRecord(file_.get());
  if (!record) return fail(plainError(Stage::state, "read", name_, "the record of this writer is damaged"));
  record->init = init;
  record->init_start = sys::processStart(init);
  return writeWriterRecord(file_.get(), *record, name_);
}

Result<void> TreeWriter::keepOld(std::vector<ProtectedFile>& files) const {
  const auto registry = WriterRegistry::open();
  if (!registry) return fail(registry.error());
  auto own = readWriterRecord(file_.get());
  if (!own) return fail(plainError(Stage::state, "read", name_, "the record of this writer is damaged"));
  own->patterns = judgement_.patterns;  // before they are stored, too
  own->around = judgement_.around;
  const auto others = registry->others(name_);
  if (!others) return fail(others.error());
  for (const WriterRegistry::Entry& one : *others) {
    if (one.record.stored && !ended_earlier_.contains(one.name) && treesOverlap(*own, one.record)) {
      keepKnown(one.record, *own, files);
    }
  }
  return {};
}

void TreeWriter::dropNew(std::vector<ProtectedFile>& found) const {
  std::vector<ProtectedFile> old = found;
  if (keepOld(old)) found = std::move(old);
}

Result<std::vector<ProtectedFile>> TreeWriter::before() const {
  std::vector<ProtectedFile> files = before_;
  if (auto kept = keepOld(files); !kept) return fail(kept.error());
  return files;
}

void TreeWriter::end() {
  const auto registry = WriterRegistry::open();
  if (!registry) return;  // the record stays, and the next writer checks again
  ended_ = true;
  auto own = readWriterRecord(file_.get());
  auto others = registry->others(name_);
  if (!own || !others) return;
  own->ended = true;
  if (!writeWriterRecord(file_.get(), *own, name_)) return;  // as above
  const auto needed = [&](const WriterRecord& ended) {
    return std::ranges::any_of(
        *others, [&](const WriterRegistry::Entry& one) { return isActive(one) && treesOverlap(ended, one.record); });
  };
  if (!needed(*own)) (void)registry->directory().remove(name_);
  for (const WriterRegistry::Entry& one : *others) {
    if (one.record.ended && !one.owned && !needed(one.record)) (void)registry->directory().remove(one.name);
  }
  file_.reset();
}

std::vector<KilledWriter> killedWriters() {
  std::vector<KilledWriter> killed;
  if (!mayHaveRecords()) return killed;
  auto registry = WriterRegistry::open();
  auto others = registry ? registry->others("") : fail(registry.error());
  if (!others) return killed;
  for (WriterRegistry::Entry& one : *others) {
    if (one.owned || one.record.ended || mayStillRun(one.record)) continue;
    if (!one.record.stored || one.record.init == 0) {  // its program never started
      (void)registry->directory().remove(one.name);
      continue;
    }
    killed.push_back({std::move(one.file), std::move(one.name), std::move(one.record.path), std::move(one.record.tree),
                      std::move(one.record.before), std::move(one.record.patterns), std::move(one.record.called),
                      std::move(one.record.git_directories)});
  }
  return killed;
}

void forgetWriter(const KilledWriter& writer) {
  if (const auto registry = WriterRegistry::open()) (void)registry->directory().remove(writer.name);
}

}  // namespace caisson::host
