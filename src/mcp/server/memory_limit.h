// Limits the memory that calls, or answers, use together.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace caisson::mcp {

class MemoryLimit {
 public:
  explicit MemoryLimit(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Takes a share, which is given back when the result is destroyed; null if there is not enough.
  [[nodiscard]] std::shared_ptr<void> reserve(std::size_t bytes) {
    if (used_->fetch_add(bytes) + bytes > max_bytes_) {
      *used_ -= bytes;
      return nullptr;
    }
    return {used_.get(), [used = used_, bytes](void*) { *used -= bytes; }};
  }

 private:
  std::size_t max_bytes_;
  std::shared_ptr<std::atomic<std::size_t>> used_ = std::make_shared<std::atomic<std::size_t>>(0);
};

}  // namespace caisson::mcp
