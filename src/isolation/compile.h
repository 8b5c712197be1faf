// From a plan to the flat block that a launch's child walks.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "isolation/block.h"
#include "plan/plan.h"

namespace caisson::isolation {

/// The lower directories of an overlay in its store, as the kernel wants them. What is masked is masked in the host's
/// directory; a session may make files of the same names.
std::string lowerNames(const plan::MountOverlay& step);

/// Owns the mapping a Block lives in.
class BlockMapping {
 public:
  BlockMapping(BlockMapping&& other) noexcept;
  BlockMapping& operator=(BlockMapping&&) = delete;
  ~BlockMapping();

  Block& operator*() const { return *block_; }
  Block* operator->() const { return block_; }

  /// `shared`: an empty memory file that becomes the block, mapped at an address where pid 1 of a session can map it
  /// too.
  static Result<BlockMapping> compile(const plan::Plan& plan, int shared = -1);

 private:
  explicit BlockMapping(Block* block) : block_(block) {}
  Block* block_;
};

}  // namespace caisson::isolation
