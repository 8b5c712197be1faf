// Events of the watched directories: judges each new or changed file alone. A scan of a large workspace takes longer
// than a program needs to read one.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "base/path_parts.h"
#include "host/denied_matches.h"
#include "host/secret_search.h"
#include "isolation/child.h"
#include "policy/rules/denied_names.h"
#include "policy/rules/secret_files.h"
#include "supervise/workspace/secret_watch.h"
#include "supervise/workspace/watched_events.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

constexpr int kMaxReads = 8;
constexpr std::size_t kMaxNewEntries = 1000;  // of new directories, in one batch of events
constexpr std::size_t kMaxUnjudged = 1000;
/// After contents were judged, wait this many times as long as it took: a file that is written all the time costs a
/// tenth of the time.
constexpr int kJudgingPauseFactor = 9;
constexpr auto kMaxJudgingTime = std::chrono::milliseconds(20);

/// Whether a name in a directory can be a secret or lead to one.
bool matters(std::string_view name, bool directory) {
  return directory || policy::mayBeSecret(name) || policy::isConfigName(name);
}

}  // namespace

void SecretWatch::onEvents() {
  alignas(inotify_event) char buffer[16384];
  Reaction reaction;
  for (int piece = 0; piece < kMaxReads; ++piece) {  // other programs may write faster than this reads
    const ssize_t got = ::read(inotify_.get(), buffer, sizeof(buffer));
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      onEvent(*event, reaction);
    }
  }
  hide(reaction.secrets);
  if (judge_timer_ == 0) judgeContents();
  // A scan is not interrupted: what appears in a burst is judged before it begins.
  if (reaction.scan) scheduleScan(std::max(next_scan_, Clock::now() + scan_took_));
}

void SecretWatch::onEvent(const inotify_event& event, Reaction& reaction) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) {  // any file may be another one now
    for (auto& [path, identity] : masked_) identity.reset();
    reaction.scan = true;
  }
  if (around_watches_.contains(event.wd)) {
    reaction.scan = true;
    if ((event.mask & IN_IGNORED) == 0) return;
    around_watches_.erase(event.wd);
    std::erase_if(around_, [&](const auto& one) { return one.second.watch == event.wd; });
    return;
  }
  const auto watched = watched_.find(event.wd);
  if (watched == watched_.end()) return;
  if ((event.mask & IN_IGNORED) != 0) return forget(event.wd);  // the directory is gone
  if (event.len == 0) return;
  const std::string path = join(watched->second, event.name);
  const bool directory = (event.mask & IN_ISDIR) != 0;
  if ((event.mask & IN_MOVED_FROM) != 0) onMovedFrom(path, event.cookie);
  if ((event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return forgetMasksOf(path);
  if ((event.mask & IN_MOVED_TO) != 0) onMovedTo(path, event.cookie);
  const bool told =
      matters(event.name, directory) || masked_.contains(path) || host::mayMatch(options_.scan.denied, event.name);
  const bool appeared = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
  if (!told) return onOtherName(path, (event.mask & IN_MODIFY) != 0, reaction);
  if ((event.mask & IN_MODIFY) != 0) {
    if (policy::mayBeSecret(event.name) && !masked_.contains(path)) judgeLater(path, reaction);
    return;
  }
  reaction.scan = true;
  if (appeared && masked_.erase(path) > 0) {
    reaction.secrets.push_back(path);  // replaced
  } else if (appeared) {
    onNewEntry(path, directory, reaction);
  } else if (!masked_.contains(path)) {
    judgeLater(path, reaction);
  }
}

std::uint32_t SecretWatch::typeOf(const std::string& path) const {
  const auto described = describe(path);
  return described ? described->type : 0;
}

void SecretWatch::onNewEntry(const std::string& path, bool directory, Reaction& reaction) {
  const host::ScanOptions& scan = options_.scan;
  const bool denied =
      std::ranges::any_of(scan.denied, [&](const std::string& entry) { return policy::deniesPath(entry, path); });
  if (!denied && !directory && typeOf(path) == S_IFLNK) return;  // its end decides: a scan
  if (denied || (scan.secrets && host::isNamedSecret(options_.workspace, path, directory, scan.shown))) {
    reaction.secrets.push_back(path);
  } else if (directory) {
    enterNewDirectory(path, reaction);
  } else {
    judgeLater(path, reaction);
  }
}

void SecretWatch::onOtherName(const std::string& path, bool modified, Reaction& reaction) {
  if (!options_.scan.secrets) return;
  const auto described = describe(path);
  const bool linked = described && described->type == S_IFREG && described->names > 1;
  // A link or a configuration may lead to it, also to what is written later.
  reaction.scan = reaction.scan || !described || !modified || linked;
  if (!linked) return;
  if (!reaction.hidden) {
    reaction.hidden.emplace();
    for (const std::string& hidden : hidden_) {
      const auto file = describe(hidden);
      if (file && file->type == S_IFREG && file->names > 1) reaction.hidden->push_back(file->identity);
    }
  }
  const auto same = [&](const Identity& one) { return one.sameFile(described->identity); };
  if (std::ranges::any_of(*reaction.hidden, same)) reaction.secrets.push_back(path);
}

void SecretWatch::enterNewDirectory(const std::string& path, Reaction& reaction) {
  const auto opened = watch(options_.directory->get(), path, kWatchedEvents);
  if (!opened) return;
  remember(path, *opened);
  auto root = sys::RootDir::share(options_.directory->get(), {.known_as = options_.workspace});
  const auto entries = root ? root->list(path) : fail(root.error());
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (++reaction.entries > kMaxNewEntries) return;  // the scan judges the rest
    const bool directory = entry.type == sys::FileType::directory;
    if (matters(entry.name, directory) || host::mayMatch(options_.scan.denied, entry.name)) {
      onNewEntry(join(path, entry.name), directory, reaction);
    } else {
      onOtherName(join(path, entry.name), false, reaction);
    }
  }
}

void SecretWatch::judgeLater(const std::string& path, Reaction& reaction) {
  if (!options_.scan.secrets) return;
  if (unjudged_.size() < kMaxUnjudged) {
    unjudged_.insert(path);
  } else if (!unjudged_.contains(path)) {
    reaction.scan = true;
  }
}

void SecretWatch::judgeSome() {
  const auto start = Clock::now();
  next_judging_ = start + kMaxJudgingTime;
  auto root = sys::RootDir::share(options_.directory->get(), {.known_as = options_.workspace});
  if (!root) return;  // for want of descriptors: later
  plan::WorkspaceScan found;
  host::SecretSearch search(*root, options_.workspace, options_.scan.shown, found);
  while (!unjudged_.empty() && Clock::now() - start < kMaxJudgingTime) {
    const std::string path = std::move(unjudged_.extract(unjudged_.begin()).value());
    const std::string name = nameOf(path);
    if (host::SecretSearch::matters(name) && typeOf(path) == S_IFREG) search.hideFile(path, name);
  }
  next_judging_ = Clock::now() + (Clock::now() - start) * kJudgingPauseFactor;
  hide(found.secrets);
}

void SecretWatch::judgeContents() {
  if (unjudged_.empty()) return;
  if (Clock::now() >= next_judging_) judgeSome();
  if (unjudged_.empty()) return;
  judge_timer_ = loop_.at(next_judging_, [this] {
    judge_timer_ = 0;
    judgeContents();
  });
}

}  // namespace caisson::supervise
