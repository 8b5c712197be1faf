#include "image_store/registry/download.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "sys/remove_tree.h"

namespace caisson::image {
namespace {

constexpr int kResumeAttempts = 5;

/// Whether the file still has this name: another process may have adopted it since it was opened.
bool hasName(const sys::Fd& file, const sys::RootDir& root, const std::string& path) {
  struct stat status{};
  const auto named = root.stat(path);
  return named && ::fstat(file.get(), &status) == 0 && named->inode == status.st_ino;
}

/// A blob that is being downloaded: its file, and the hash of what is in it. The file is locked until this object is
/// gone: no other process may change it between the check of its digest and Transaction::adopt().
class PartialBlob {
 public:
  /// Takes partial/HEX, or a file with a random name if another process is downloading the same blob.
  static Result<PartialBlob> open(const Store& store, const Descriptor& wanted) {
    std::string path = "partial/" + wanted.digest.hex();
    auto file = store.root().openFile(path, {.flags = O_RDWR | O_CREAT});
    if (!file) return fail(file.error());
    if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0 || !hasName(*file, store.root(), path)) {
      const auto random = sys::unpredictableName();
      path = "partial/" + random.value_or(".caisson-download");
      file = store.root().openFile(path, {.flags = O_RDWR | O_CREAT | O_EXCL});
      if (!file) return fail(file.error());
      if (::flock(file->get(), LOCK_EX | LOCK_NB) != 0) return fail(sysError(Stage::state, "flock", path, errno));
    }
    PartialBlob blob(std::move(*file), std::move(path));
    if (auto hashed = blob.hashExisting(wanted.size); !hashed) return fail(hashed.error());
    return blob;
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  Result<void> restart() {
    size_ = 0;
    hash_ = Sha256();
    if (::ftruncate(file_.get(), 0) != 0) return fail(sysError(Stage::state, "truncate", path_, errno));
    return {};
  }
  Result<void> append(std::string_view bytes, std::uint64_t most) {
    if (size_ + bytes.size() > most)
      return fail(plainError(Stage::state, "registry", path_, "the blob is larger than the manifest states"));
    hash_.add(bytes);
    while (!bytes.empty()) {
      const ssize_t wrote = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return fail(sysError(Stage::state, "write", path_, errno));
      size_ += static_cast<std::uint64_t>(wrote);
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    }
    return {};
  }
  ContentDigest digest() { return ContentDigest::from(Sha256(hash_).finish()); }

 private:
  PartialBlob(sys::Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  Result<void> hashExisting(std::uint64_t most) {
    std::vector<char> buffer(1U << 20);
    while (true) {
      const ssize_t got = ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(size_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(sysError(Stage::state, "read", path_, errno));
      if (got == 0) break;
      hash_.add(buffer.data(), static_cast<std::size_t>(got));
      size_ += static_cast<std::uint64_t>(got);
      if (size_ > most) return restart();
    }
    return {};
  }

  sys::Fd file_;
  std::string path_;
  Sha256 hash_;
  std::uint64_t size_ = 0;
};

/// Returns the complete file, its digest checked.
Result<PartialBlob> downloadOne(const Store& store, RegistryClient& client, const Descriptor& wanted,
                                Progress& progress, const std::function<bool()>& cancelled) {
  auto partial = PartialBlob::open(store, wanted);
  if (!partial) return fail(partial.error());
  const std::size_t step = progress.begin(wanted.digest.hex().substr(0, 12) + ": downloading", wanted.size);
  Result<void> received;
  // The rest of a blob is requested again after an interrupted connection, as long as each attempt gets further.
  for (int attempt = 0; attempt < kResumeAttempts && partial->size() < wanted.size; ++attempt) {
    const std::uint64_t before = partial->size();
    received = client.blob(
        wanted, before, [&] { (void)partial->restart(); },
        [&](std::string_view piece) -> Result<void> {
          auto appended = partial->append(piece, wanted.size);
          progress.advance(step, partial->size());
          return appended;
        },
        cancelled);
    if (cancelled() || (!received && partial->size() == before)) break;
  }
  if (partial->size() != wanted.size) {
    progress.end(step, "failed");
    if (!received) return fail(received.error());
    return fail(
        plainError(Stage::state, "registry", wanted.digest.text(), "the blob is shorter than the manifest states"));
  }
  if (partial->digest() != wanted.digest) {
    progress.end(step, "failed");
    (void)store.root().remove(partial->path());
    return fail(plainError(Stage::state, "registry", wanted.digest.text(), "the downloaded data has another digest",
                           "the registry or a proxy changed it"));
  }
  progress.end(step, "downloaded");
  return partial;
}

/// Whether the blobs fit into the quota and on the disk, where an earlier attempt may have left parts of them. Parts of
/// other blobs are removed if they take the room.
Result<void> checkRoom(const Transaction& transaction, const std::vector<Descriptor>& wanted) {
  std::uint64_t total = 0, present = 0;
  std::set<std::string> names;
  for (const Descriptor& blob : wanted) {
    const auto partial = transaction.store().root().stat("partial/" + blob.digest.hex());
    total += blob.size;
    names.insert(blob.digest.hex());
    present += std::min(blob.size, partial ? partial->size : 0);
    if (blob.size <= transaction.room() && total <= transaction.room()) continue;
    return fail(plainError(Stage::state, "image", "store", "the image does not fit into the quota of the image store",
                           "caisson image prune, or raise images.quota in the configuration"));
  }
  const Store& store = transaction.store();
  if (store.trimPartial(transaction.room() - total, names) > transaction.room() - total) {
    return fail(plainError(Stage::state, "image", "store", "other downloads use the rest of the quota",
                           "try again when they are complete"));
  }
  if (total - present > transaction.diskRoom()) (void)store.trimPartial(0, names);
  if (total - present <= transaction.diskRoom()) return {};
  return fail(plainError(Stage::state, "image", "store", "the disk has no room for the image", "caisson image prune"));
}

}  // namespace

Result<void> downloadBlobs(Transaction& transaction, RegistrySession& session, const std::vector<Descriptor>& wanted,
                           Progress& progress) {
  if (auto fits = checkRoom(transaction, wanted); !fits) return fits;
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stopped = false;
  std::mutex mutex;
  std::optional<Error> error;
  std::vector<std::optional<PartialBlob>> complete(wanted.size());
  const std::function<bool()> cancelled = [&] { return stopped.load(); };
  const auto work = [&] {
    RegistryClient client(session);
    for (std::size_t at = next++; at < wanted.size() && !stopped; at = next++) {
      auto blob = downloadOne(transaction.store(), client, wanted[at], progress, cancelled);
      const std::lock_guard guard(mutex);
      if (blob) complete[at].emplace(std::move(*blob));
      if (!blob && !error) error = blob.error();
      if (!blob) stopped = true;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t count = 1; count < std::min(kParallelDownloads, wanted.size()); ++count)
      threads.emplace_back(work);
    work();
  }
  if (error) return fail(*error);
  for (std::size_t at = 0; at < wanted.size(); ++at)
    if (auto adopted = transaction.adopt(complete[at]->path(), wanted[at].digest, wanted[at].size); !adopted)
      return adopted;
  return {};
}

}  // namespace caisson::image
