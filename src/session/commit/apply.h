// Puts the staged objects of a transaction into the real workspace, one path at a time, so that each is old or new at
// every instant.
//
// A file that is there is exchanged with the staged one and then looked at: if it is not what the commit was planned
// for, the exchange is taken back. So a change that is made between check and rename is never lost. Everything
// is repeatable: after a crash the same transaction is applied again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "session/commit/committed.h"
#include "session/commit/journal.h"
#include "session/commit/kept_commits.h"
#include "session/commit/real_tree.h"
#include "session/commit/staging.h"

namespace caisson::session {

class Applier {
 public:
  /// `recovering`: after a crash, when a part of the transaction may be done. `kept`: where to keep what is replaced
  /// and deleted; null: it is lost. `placements`: kPlaced, to which this adds.
  Applier(RealTree& tree, const Staging& staging, const Transaction& transaction, const Committed& committed,
          Committed& placements, const KeptCommit* kept, bool recovering);

  /// Carries out one action of the transaction. The text says why the real file was left alone (a conflict); empty: it
  /// is done, by this call or before a crash.
  Result<std::string> apply(std::size_t index);
  /// Reverts what apply() did, as far as the real workspace has not changed again. Returns the paths that stay changed.
  std::vector<std::string> undo();
  /// Keeps everything that was moved out of the workspace, by this process or before a crash. After apply() or undo(),
  /// before removeTemporaries(). `kept` null: nothing is kept.
  Result<void> keepReplaced(const KeptCommit* kept) const;
  /// Whether `there` is what apply() put at the path of an action, not replaced or changed since; of a directory, names
  /// may have come and gone. After a crash, what is not in `placements` is not known, and so not this.
  [[nodiscard]] bool isPlaced(std::size_t index, const sys::FileInfo& there) const;
  [[nodiscard]] bool recovering() const { return recovering_; }
  /// Whether an action put an object in place, perhaps before a crash.
  [[nodiscard]] bool wasPlaced(std::size_t index) const {
    return placements_.lastChange(transaction_.actions[index].path) == LastChange::put;
  }
  [[nodiscard]] const Committed& placements() const { return placements_; }
  /// Whether the name of an action is as the transaction left it. `done`: as apply() returned.
  [[nodiscard]] bool isLeft(std::size_t index, bool done) const;
  /// What undo() put back to the path of an action, if nothing else changed it since it was planned.
  [[nodiscard]] std::optional<sys::FileInfo> putBack(std::size_t index) const;
  /// What is now where an action put its object, also in a directory that the host moved since.
  [[nodiscard]] std::optional<sys::FileInfo> lookAtPlaced(std::size_t index) const;
  /// Removes the temporary files beside their places that this process or one that crashed left.
  void removeTemporaries();

 private:
  /// Where a staged object lies: in the staging directory, or beside its place.
  struct Source {
    int directory = -1;
    std::string name;
    bool beside = false;
  };
  /// What apply() did with a path: what undo() has to revert.
  enum class How : std::uint8_t {
    made,        ///< created a directory
    exchanged,   ///< exchanged the real object with the staged one
    added,       ///< put the staged object where nothing was
    replaced,    ///< replaced the real object, which is lost: moving it would expose it
    removed,     ///< removed the real object, which is lost
    moved_away,  ///< moved the real object to the staging directory, or to a temporary name beside its place
    mode,        ///< changed the mode of an existing directory, or nothing
  };
  struct Done {
    std::size_t index = 0;
    How how = How::added;
    bool beside = false;     ///< the source was a copy beside the real file, or that is where it was moved to
    mode_t mode_before = 0;  ///< for `mode`
  };

  // The parts of apply(), with the same result. place(): a staged object. makeDirectory(): a directory that was not
  // staged.
  Result<std::string> place(std::size_t index);
  Result<std::string> remove(std::size_t index);
  Result<std::string> makeDirectory(std::size_t index);
  /// Renames the staged object to its place: exchanged with what is there, or as a new name. Where an exchange would
  /// expose the old file, replaces it. Returns 0 or the errno. If the real file had changed, the exchange is reverted
  /// and `conflict` set.
  int move(std::size_t index, const Source& source, int parent, const std::string& name, std::string& conflict);
  /// Takes back an exchange that met a change of the host, unless the host has changed what was put in place, too: then
  /// the old object stays at `source`, to be kept, and `why` says it. Returns 0 or the errno: EBUSY when nothing is
  /// kept.
  int exchangeBack(std::size_t index, const Source& source, int parent, const std::string& name, std::string& why);
  /// After a crash that may have come between an exchange and the check of the old object at `source`: checks it.
  Result<std::string> checkExchanged(std::size_t index, const Source& source, int parent, const std::string& name);
  /// After a crash between the renames of an exchange(): ends or reverts it.
  void settleAside(std::size_t index);
  /// At once after an object was put in place: what the host does with it from then on is not the commit's. `staged`:
  /// as it was before.
  void notePlaced(std::size_t index, const std::optional<sys::FileInfo>& staged, int parent, const std::string& name);
  /// The same of an open directory that was made, or whose mode was changed.
  void notePlaced(std::size_t index, int directory);
  /// After a crash of which `placements` has no record, in the instant after the rename or with the machine: whether a
  /// file or link still has the content, the permissions and the attributes with which it was staged.
  [[nodiscard]] bool isAsStaged(std::size_t index, int parent, const std::string& name) const;
  /// After what was put in place was taken back.
  void noteTakenBack(std::size_t index);
  /// Whether the directory at the path of an action has the attributes with which it was put there.
  [[nodiscard]] bool hasPlacedAttributes(const Action& action) const;
  /// Copies the staged object to a temporary name beside its place, where a rename from the staging directory cannot
  /// work: another file system or mount, or a parent with a default access list.
  Result<Source> copyBeside(std::size_t index, int parent, const RealTree::ParentFacts& facts);
  /// Makes a directory, with its mode and owner, under a temporary name and renames it: a crash leaves it whole or not
  /// at all. False: something has the name.
  Result<bool> makeWhole(std::size_t index, int parent, const std::string& name);
  /// Keeps the directory of a temporary file open: the host may move it, and what is in it with it. False: too many are
  /// open.
  bool holdDirectory(std::size_t index, int parent);
  /// The directory of an action's temporary file: the one that is held, else the one that has the path; -1: none.
  [[nodiscard]] int besideDirectory(std::size_t index) const;
  /// Before undo() removes a directory that it made: removes the temporary copies in it.
  void removeCopiesIn(const std::string& directory);
  /// Whether an action replaces a file by a file, which keeps its owner, group, access list and extended attributes.
  static bool keepsAttributes(const Action& action) {
    return action.kind == ActionKind::file && action.before && action.before->type == sys::FileType::regular;
  }
  /// Whether what an action replaces must not be moved to the place of its source, where a sandbox could see it.
  [[nodiscard]] bool wouldExpose(const Action& action, const Source& source) const;
  /// Gives a staged object that replaces no file the owner it would have if created in `parent`. Root: owner and group,
  /// so that a commit leaves no root-owned files in a user's project. Others: the group, if the parent has the setgid
  /// bit. Errors are ignored.
  void inheritOwner(const RealTree::ParentFacts& parent, int directory, const std::string& name) const;
  /// After a crash: whether a copy made by copyBeside() is in place, by its content, since its inode is not in the
  /// journal.
  Result<bool> isDoneByCopy(const Action& action, int parent, const std::string& name) const;
  /// Why what was moved out of the workspace, to `name` in `directory`, is not what the commit was planned for, or
  /// empty.
  [[nodiscard]] std::string whyPutBack(const Action& action, int directory, const std::string& name) const;
  /// Why the real object `there` is not what the commit was planned for, or empty.
  [[nodiscard]] std::string whyNot(const Action& action, const std::optional<sys::FileInfo>& there) const;
  /// Whether a link would lead out of the workspace, resolved by the kernel in the tree as it is now. Links are applied
  /// last, so everything else is in place.
  [[nodiscard]] bool leadsOut(const Action& action) const;
  /// Where the real object lies that an action moved out of its place; nothing if it did not, or it is kept already.
  [[nodiscard]] std::optional<Source> replacedObject(std::size_t index) const;
  /// The name of copyBeside()'s copy in the directory of the real file.
  [[nodiscard]] std::string temporaryName(std::size_t index) const;
  /// Copies the real object for keeping, before it may be lost with its directory.
  Result<void> keepInPlace(std::size_t index, int parent, const std::string& name) const;
  /// Replaces a hidden file by `source`, or removes it if that is null, where a sandbox could see it if it was moved:
  /// it is copied, and put back if a program wrote to it meanwhile. The result is that of apply().
  Result<std::string> replaceHidden(std::size_t index, const Source* source, int parent, const std::string& name);
  /// Puts an open file, which has no name any more, back as a copy.
  static Result<void> putBackCopy(int old, const Source* source, int parent, const std::string& name,
                                  const std::string& path);
  /// Whether what the action replaced is kept already, before a crash.
  [[nodiscard]] bool isKept(std::size_t index) const { return recovering_ && kept_ != nullptr && kept_->has(index); }
  /// Why something that --discard is about to remove is not as planned any more.
  [[nodiscard]] Result<void> checkDiscarded() const;
  /// Before undoOne(): puts back to its source what keepReplaced() took of it before it failed.
  [[nodiscard]] bool returnKept(const Done& done) const;
  /// False: the path stays changed.
  bool undoOne(const Done& done);
  bool undoOne(const Done& done, const Source& from, int parent, const std::string& name);
  /// Whether `name` in `directory` is what the transaction put there, not changed since. `moved`: it was just moved,
  /// which sets the change time.
  [[nodiscard]] bool isAsPlaced(const Done& done, int directory, const std::string& name, bool moved = false) const;
  /// A rename sets the change time of a file, and so of its other hard links. noteOwnMove(): after an action moved an
  /// object that was as planned. isOwnMove(): whether only such a move changed the object.
  void noteOwnMove(const Action& action, int directory, const std::string& name);
  /// After a crash: the same, of an object that was moved back.
  void noteMovedBack(const Action& action, int directory, const std::string& name);
  /// After an action moved the real object away, or changed its mode, and before and after that is undone.
  void noteMovedOut(std::size_t index, const std::optional<sys::FileInfo>& now);
  [[nodiscard]] bool isAsMovedOut(std::size_t index, const std::optional<sys::FileInfo>& now) const;
  void findOwnMoves();
  [[nodiscard]] bool isOwnMove(const sys::FileInfo& info) const;
  [[nodiscard]] IsOurs isOurs() const;

  RealTree& tree_;
  const Staging& staging_;
  const Transaction& transaction_;
  const Committed& committed_;
  Committed& placements_;
  const KeptCommit* kept_;
  bool recovering_;
  std::optional<std::pair<uid_t, gid_t>> staged_owner_;  ///< of what this process staged; nothing: not known
  std::vector<Done> done_;
  std::map<std::size_t, std::int64_t> moved_out_;  ///< by action: the change time that this gave to the old object
  std::map<std::size_t, sys::FileInfo> put_back_;  ///< by action
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> own_moves_;  ///< device and inode: the change time
  std::map<std::pair<std::uint64_t, std::uint64_t>, sys::Fd> held_;            ///< by device and inode
  std::unordered_map<std::size_t, int> held_of_;                               ///< by action: one of held_
  std::vector<std::size_t> beside_;  ///< actions for which copyBeside() made a temporary file
};

/// The name of an action's staged object in the staging directory.
std::string stagedName(std::size_t index);

}  // namespace caisson::session
