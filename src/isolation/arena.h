// Memory for a block: pieces of one mapping, which the child inherits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::isolation {

/// Hands out pieces of one mapping. Sized once, generously, from the plan; the pages that are not used cost nothing.
class Arena {
 public:
  Arena(char* begin, char* end) : at_(begin), end_(end) {}

  /// An array of zeros. Aborts if the arena is too small.
  template <class T>
  T* array(std::size_t count) {
    const auto misfit = reinterpret_cast<std::uintptr_t>(at_) % alignof(T);
    if (misfit != 0) at_ += alignof(T) - misfit;
    if (at_ + sizeof(T) * count > end_) std::abort();  // stepBytes() or another estimate is too small
    T* result = new (at_) T[count]();
    at_ += sizeof(T) * count;
    return result;
  }
  /// A copy with a NUL at its end.
  const char* text(std::string_view value) {
    char* copy = array<char>(value.size() + 1);
    std::copy(value.begin(), value.end(), copy);
    return copy;
  }
  /// Copies of all values, as a null-terminated list.
  const char* const* texts(const std::vector<std::string>& values) {
    const char** list = array<const char*>(values.size() + 1);
    for (std::size_t i = 0; i < values.size(); ++i) list[i] = text(values[i]);
    return list;
  }
  /// The end of the pieces in use.
  [[nodiscard]] char* end() const { return at_; }

 private:
  char* at_;
  char* end_;
};

/// Upper bound of what Arena::texts() takes.
inline std::size_t textBytes(const std::vector<std::string>& values) {
  std::size_t bytes = 16;
  for (const std::string& value : values) bytes += value.size() + 1 + sizeof(char*);
  return bytes;
}

}  // namespace caisson::isolation
