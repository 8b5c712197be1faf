// Compiles a plan into the flat block that a launch's child applies.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "isolation/block.h"
#include "plan/plan.h"
#include "sys/fd.h"

namespace caisson::isolation {

/// The overlay's `lowerdir` option: names in its store, uppermost first. Masks apply to the host's directory only; a
/// session may create files of the same names.
std::string lowerNames(const plan::MountOverlay& step);

/// Owns the mapping that contains a Block.
class BlockMapping {
 public:
  BlockMapping(BlockMapping&& other) noexcept;
  BlockMapping& operator=(BlockMapping&&) = delete;
  ~BlockMapping();

  Block& operator*() const { return *block_; }
  Block* operator->() const { return block_; }

  /// Compiles a plan into a new mapping, with stacks for pid 1 and the payload. The caller fills in descriptors.
  static Result<BlockMapping> compile(const plan::Plan& plan);

 private:
  explicit BlockMapping(Block* block) : block_(block) {}
  Block* block_;
};

/// A memory file with a Block, for a process that maps it at `address`.
struct BlockFile {
  sys::Fd file;
  std::uint64_t address = 0, bytes = 0;  ///< its pointers are valid only there
};

/// Compiles plans for pid 1 of a session. Reuses its memory for later plans; consecutive blocks have different
/// addresses. The blocks have no stacks, since pid 1 has its own.
class BlockSpace {
 public:
  BlockSpace() = default;
  BlockSpace(const BlockSpace&) = delete;
  BlockSpace& operator=(const BlockSpace&) = delete;
  ~BlockSpace();

  /// `adjust` changes the block before it is copied to the file.
  Result<BlockFile> compile(const plan::Plan& plan, const std::function<void(Block&)>& adjust = {});

 private:
  struct Area {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  Area areas_[2];
  unsigned next_ = 0;
};

}  // namespace caisson::isolation
