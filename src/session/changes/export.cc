// exportTar: changed files as an archive.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "policy/rules/secret_content.h"
#include "session/changes/left_out.h"
#include "session/changes/sparse_read.h"
#include "session/changes/tar_stream.h"
#include "session/client/session_context.h"

namespace caisson::session {
namespace {

using sys::FileType;

class TarExport {
 public:
  TarExport(const LayerStack& now, const std::function<bool(std::string_view)>& write) : now_(now), tar_(write) {}

  /// False: the reader wants no more.
  bool add(const StackChange& change) {
    if (change.kind == ChangeKind::deleted) {
      report_.deleted.push_back(change.path);
      return true;
    }
    if (!change.unread.empty()) leaveOut(change.path, change.unread);
    const sys::FileInfo& info = change.now.info;
    TarEntry entry{.path = change.path,
                   .mode = static_cast<std::uint32_t>(info.mode & 0777U),
                   .modified = info.modified_ns / 1'000'000'000};
    switch (info.type) {
      case FileType::directory:
        entry.type = TarEntry::Type::directory;
        ++report_.entries;
        return tar_.begin(entry);
      case FileType::link: return addLink(change, std::move(entry));
      case FileType::regular: return addFile(change, std::move(entry));
      default: leaveOut(change.path, "a " + std::string(sys::name(info.type)) + " is not exported"); return true;
    }
  }

  bool finish() { return tar_.finish(); }
  ExportReport& report() { return report_; }

 private:
  void leaveOut(const std::string& path, std::string reason) { addLeftOut(report_.left_out, path, std::move(reason)); }

  bool addLink(const StackChange& change, TarEntry entry) {
    auto target = now_.readLink(change.path, change.now);
    if (!target) {
      leaveOut(change.path, now_.isHidden(change.path, change.now) ? kHiddenOnHost : "it changed while it was read");
      return true;
    }
    entry.type = TarEntry::Type::link;
    entry.target = *std::move(target);
    ++report_.entries;
    return tar_.begin(entry);
  }

  /// The archive may hold a file of the host where it has what a checkpoint does not have.
  bool isHidden(const StackChange& change, const Result<sys::OpenedFile>& opened) const {
    if (now_.isHidden(change.path, change.now)) return true;
    if (!opened || !now_.layers()[change.now.layer].name.empty()) return false;
    std::string text(std::min<std::uint64_t>(opened->info.size, policy::kMaxJudgedBytes), '\0');
    const ssize_t got = ::pread(opened->file.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return now_.isHiddenContent(change.path, change.now, text, opened->info.size);
  }

  bool addFile(const StackChange& change, TarEntry entry) {
    const auto opened = now_.open(change.path, change.now);
    if (isHidden(change, opened)) {
      leaveOut(change.path, kHiddenOnHost);
      return true;
    }
    if (!opened) {
      const bool denied = opened.error().sys_errno == EACCES;
      leaveOut(change.path, denied ? "its content cannot be read" : "it changed while it was read");
      return true;
    }
    entry.size = opened->info.size;
    const int file = opened->file.get();
    ++report_.entries;
    const auto extents = dataExtents(file, entry.size);
    if (extents ? !tar_.beginSparse(entry, *extents) : !tar_.begin(entry)) return false;
    bool cut = false;
    const auto sink = [this](std::string_view bytes) { return tar_.data(bytes); };
    for (const Extent& extent : extents.value_or(std::vector<Extent>{{0, entry.size}})) {
      if (!readExtent(file, extent, cut, sink)) return false;
    }
    if (cut) leaveOut(change.path, "it became shorter while it was read; its end is zeros in the archive");
    return tar_.end();
  }

  const LayerStack& now_;
  TarStream tar_;
  ExportReport report_;
};

}  // namespace

Result<ExportReport> SessionContext::exportTar(std::string_view checkpoint,
                                               const std::function<bool(std::string_view)>& write) {
  auto held = lock();
  if (!held) return fail(held.error());
  auto compared = openForComparison("session export", checkpoint);
  if (!compared) return fail(compared.error());
  auto changes = compareEntries(compared->before, compared->now);
  if (!changes) return fail(changes.error());
  held->reset();  // the reader of the archive may be slow
  TarExport archive(compared->now, write);
  for (const StackChange& change : *changes) {
    if (!archive.add(change)) return std::move(archive.report());
  }
  (void)archive.finish();
  return std::move(archive.report());
}

}  // namespace caisson::session
