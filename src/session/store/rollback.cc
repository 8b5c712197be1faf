#include "session/store/rollback.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "session/sandbox.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr std::string_view kDiscarded = "discarded-";  // scratch directories, in the directory of a session
constexpr const char* kRollbackFile = "rollback";
constexpr const char* kEvidence = "evidence-";  // checkpoints

}  // namespace

std::string newLayerName() {
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz234567";
  unsigned char bytes[6] = {};
  (void)!::getrandom(bytes, sizeof(bytes), 0);
  std::string name;
  for (const unsigned char byte : bytes) name += kLetters[byte & 31];
  return name;
}

Result<void> discardScratch(const RootDir& session) {
  // Removing it takes time: see clean().
  auto renamed = session.rename(kScratchDirectory, std::string(kDiscarded) + newLayerName(), false);
  if (!renamed && renamed.error().sys_errno == ENOENT) return {};
  return renamed;
}

Result<std::string> discardUpper(const RootDir& session, Metadata& metadata) {
  Metadata after = metadata;
  std::string evidence;
  for (std::size_t number = 1; evidence.empty(); ++number) {
    const std::string name = kEvidence + std::to_string(number);
    const auto same = [&](const Checkpoint& one) { return one.name == name; };
    if (std::none_of(after.checkpoints.begin(), after.checkpoints.end(), same)) evidence = name;
  }
  std::vector<std::string> layers = after.frozen;
  layers.insert(layers.begin(), after.upper);
  std::vector<std::string> root = after.root_frozen;
  root.insert(root.begin(), after.root_upper);
  after.checkpoints.push_back({evidence, std::time(nullptr), std::move(layers), std::move(root)});
  after.upper = newLayerName();
  after.root_upper = newLayerName();
  // What the attacker left in /tmp and the home must not reach the next command. Removing it takes time: see clean().
  auto renamed = session.rename(kScratchDirectory, std::string(kDiscarded) + evidence, false);
  if (!renamed && renamed.error().sys_errno != ENOENT) return fail(renamed.error());
  // The attacker may have filled the metadata: what an escape wrote is discarded even if older evidence has to go.
  for (auto old = after.checkpoints.begin(); toJson(after).size() > kMaxMetadataBytes;) {
    old = std::find_if(old, after.checkpoints.end() - 1,
                       [](const Checkpoint& one) { return one.name.starts_with(kEvidence); });
    if (old == after.checkpoints.end() - 1) break;
    old = after.checkpoints.erase(old);
  }
  if (auto written = writeMetadata(session, after); !written) return fail(written.error());
  metadata = std::move(after);
  return evidence;
}

Result<void> requestRollback(const RootDir& session, const std::string& upper) {
  return session.writeFileAtomic(kRollbackFile, upper, 0600);
}

Result<std::string> carryOutRollback(const RootDir& session, Metadata& metadata) {
  const auto upper = session.readFile(kRollbackFile, 64);
  if (!upper) return std::string();
  std::string evidence;
  if (*upper == metadata.upper) {  // otherwise it was dropped meanwhile
    auto discarded = discardUpper(session, metadata);
    if (!discarded) return discarded;
    evidence = std::move(*discarded);
  }
  if (auto removed = session.remove(kRollbackFile); !removed) return fail(removed.error());
  return evidence;
}

void removeDiscarded(const RootDir& session) {
  const auto entries = session.list("");
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (entry.name.starts_with(kDiscarded)) (void)supervise::removeForeignTree(session, entry.name);
  }
}

}  // namespace caisson::session
