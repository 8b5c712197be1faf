#include "session/commit/merge.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/sha256.h"
#include "session/changes/git_patch.h"
#include "session/changes/line_merge.h"
#include "session/commit/journal.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kMaxMergedBytes = 16U << 20;

std::optional<std::string> readForMerge(int file, std::uint64_t size) {
  return size > kMaxMergedBytes ? std::nullopt : readBytes(file, size);
}

}  // namespace

std::optional<std::string> readBytes(int file, std::uint64_t size) {
  std::string content(size, '\0');
  for (std::size_t have = 0; have < size;) {
    const ssize_t got = ::pread(file, content.data() + have, size - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    have += static_cast<std::size_t>(got);
  }
  return content;
}

const GitBases& MergeBases::git() {
  if (!git_) git_ = GitBases::load(session_, metadata_, roots_.real());
  return *git_;
}

bool MergeBases::mayHave(const std::string& path) { return !committed_.hashOf(path).empty() || git().has(path); }

std::optional<std::string> MergeBases::find(const std::string& path) {
  if (auto committed = findCommitted(path)) return committed;
  return git().content(path);
}

std::optional<std::string> MergeBases::findCommitted(const std::string& path) {
  const std::string wanted = committed_.hashOf(path);
  if (wanted.empty()) return std::nullopt;
  std::vector<std::vector<std::string>> states;
  for (auto layers = metadata_.frozen; !layers.empty(); layers.erase(layers.begin())) states.push_back(layers);
  for (const Checkpoint& one : metadata_.checkpoints) states.push_back(one.frozen);
  for (const std::vector<std::string>& layers : states) {
    const auto stack = roots_.stack(layers);
    if (!stack) continue;
    const LayerStack::Entry entry = stack->find(path);
    if (!entry.present || entry.info.type != sys::FileType::regular) continue;
    if (stack->layers()[entry.layer].name.empty()) continue;  // the real file as it is now
    const auto opened = stack->open(path, entry);
    if (!opened) continue;
    auto content = readForMerge(opened->file.get(), opened->info.size);
    if (content && hex(Sha256().add(*content).finish()) == wanted) return content;
  }
  return std::nullopt;
}

std::optional<std::string> FileMerger::realContent(const std::string& path, const sys::FileInfo& there) {
  std::string name;
  const auto parent = real_.parentOf(path, name);
  if (!parent) return std::nullopt;
  const sys::Fd file(::openat(*parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const HostIdentity before = HostIdentity::of(there);
  const auto unchanged = [&] {
    struct stat status;
    return file && ::fstat(file.get(), &status) == 0 && before.matches(fileInfoOf(status));
  };
  if (!unchanged()) return std::nullopt;
  auto content = readForMerge(file.get(), before.size);
  return content && unchanged() ? content : std::nullopt;
}

std::expected<std::optional<std::string>, std::string> FileMerger::merge(const std::string& path,
                                                                         const sys::FileInfo& there,
                                                                         const LayerStack::Entry& entry) {
  const auto refuse = [](std::string_view why) {
    return std::unexpected("it was changed meanwhile, and " + std::string(why));
  };
  // The report has the digest of the result, and conflicts tell which lines are the same.
  constexpr std::string_view kHidden = "the real file is hidden from the session";
  if (hidden_.hides(path)) return refuse(kHidden);
  const auto base = bases_.find(path);
  if (!base) return refuse("the version that both come from is not known");
  const auto real = realContent(path, there);
  const auto opened = now_.open(path, entry);
  const auto own = opened ? readForMerge(opened->file.get(), opened->info.size) : std::nullopt;
  if (!real || !own) return refuse("it is larger than 16 MiB or changes while it is read");
  if (hidden_.hidesContent(path, *real, real->size())) return refuse(kHidden);
  if (isBinary(*base) || isBinary(*real) || isBinary(*own)) return refuse("a binary file cannot be merged");
  auto merged = mergeLines(*base, *real, *own, budget_);
  if (!merged) return refuse("both sides changed the same or neighbouring lines");
  if (*merged == *real) return std::nullopt;
  return *std::move(merged);
}

}  // namespace caisson::session
