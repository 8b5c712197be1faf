// Puts the staged objects of a transaction into the real workspace, one path at a time, so that each is old or new at
// every instant.
//
// A file that is there is exchanged with the staged one and then looked at: if it is not what the commit was planned
// for, the exchange is taken back. So a change that is made between check and rename is never lost. Everything
// is repeatable: after a crash the same transaction is applied again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "session/commit/committed.h"
#include "session/commit/journal.h"
#include "session/commit/real_tree.h"
#include "session/commit/staging.h"

namespace caisson::session {

class Applier {
 public:
  /// `recovering`: after a crash, when a part of the transaction may be done.
  Applier(RealTree& tree, const Staging& staging, const Transaction& transaction, const Committed& committed,
          bool recovering);

  /// Puts one in place. The text says why the real file was left alone (a conflict); empty: it is done, by this call or
  /// before a crash.
  Result<std::string> apply(std::size_t index);
  /// Takes back what apply() did, as far as the real workspace has not changed again. The paths that stay changed.
  std::vector<std::string> undo();
  /// Removes the temporary files beside their places that this process or one that crashed left.
  void removeTemporaries();

 private:
  /// Where a staged object lies: in the staging directory, or beside its place.
  struct Source {
    int directory = -1;
    std::string name;
    bool beside = false;
  };
  enum class How : std::uint8_t { made, exchanged, added, replaced, removed, moved_away, mode };
  struct Done {
    std::size_t index = 0;
    How how = How::added;
    bool beside = false;
    mode_t mode_before = 0;
  };

  Result<std::string> place(std::size_t index);
  Result<std::string> remove(std::size_t index);
  Result<std::string> makeDirectory(std::size_t index);
  /// The errno of the rename, or 0; `conflict` says why it was taken back.
  int move(std::size_t index, const Source& source, int parent, const std::string& name, std::string& conflict);
  Result<Source> copyBeside(std::size_t index, int parent, const RealTree::ParentFacts& facts);
  void giveTo(const RealTree::ParentFacts& parent, int directory, const std::string& name) const;
  Result<bool> isDoneByCopy(const Action& action, int parent, const std::string& name) const;
  [[nodiscard]] std::string whyNot(const Action& action, const std::optional<sys::FileInfo>& there) const;
  [[nodiscard]] bool leadsOut(const Action& action) const;
  [[nodiscard]] std::string temporaryName(std::size_t index) const;
  bool undoOne(const Done& done);

  RealTree& tree_;
  const Staging& staging_;
  const Transaction& transaction_;
  const Committed& committed_;
  bool recovering_;
  std::optional<std::pair<uid_t, gid_t>> staged_owner_;  ///< of what this process staged
  std::vector<Done> done_;
  std::vector<std::size_t> beside_;
};

/// The name of an action's staged object in the staging directory.
std::string stagedName(std::size_t index);

}  // namespace caisson::session
