// Encodes values as bytes, between processes that may be of different versions of caisson.
//
// A structure is preceded by its size, so a later version may append members to any structure: an older reader ignores
// them, and a newer reader keeps the defaults of members that are missing. Members are never removed, reordered or
// given another type. Decoding any bytes terminates, reads nothing beyond their end and allocates at most a small
// multiple of their length. A type takes part through a function fields(archive, value) that passes every member to the
// archive.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace caisson::session::codec {

/// Values that are encoded as their bytes in memory.
template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

enum class Layout : std::uint8_t {
  extensible,  ///< as above
  fixed,       ///< structures without sizes, for a file that states its version
};

class Writer {
 public:
  explicit Writer(Layout layout) : layout_(layout) {}

  template <class... T>
  void operator()(const T&... values) {
    (value(values), ...);
  }
  /// The encoded bytes. Call last.
  std::string take() { return std::move(bytes_); }

 private:
  template <Plain T>
  void value(const T& plain) {
    bytes_.append(reinterpret_cast<const char*>(&plain), sizeof(plain));
  }
  void value(std::string_view text) {
    value(std::uint64_t{text.size()});
    bytes_ += text;
  }
  void value(const std::string& text) { value(std::string_view(text)); }
  template <class T>
  void value(const std::vector<T>& list) {
    value(std::uint64_t{list.size()});
    for (const T& one : list) value(one);
  }
  template <class T>
  void value(const std::map<std::string, T>& map) {
    value(std::uint64_t{map.size()});
    for (const auto& [name, one] : map) (*this)(name, one);
  }
  template <class T>
  void value(const std::optional<T>& maybe) {
    value(maybe.has_value());
    if (maybe) value(*maybe);
  }
  template <class T>
    requires(std::is_class_v<T>)
  void value(const T& whole) {
    if (layout_ == Layout::fixed) return fields(*this, whole);
    const std::size_t begin = bytes_.size();
    value(std::uint32_t{0});
    fields(*this, whole);
    const auto size = static_cast<std::uint32_t>(bytes_.size() - begin - sizeof(std::uint32_t));
    std::memcpy(bytes_.data() + begin, &size, sizeof(size));
  }

  Layout layout_;
  std::string bytes_;
};

/// Reads what Writer wrote.
class Reader {
 public:
  Reader(std::string_view bytes, Layout layout) : rest_(bytes), layout_(layout) {}

  /// Reads values in the order in which they were written; appends to lists and maps. Check complete() before use.
  template <class... T>
  void operator()(T&... values) {
    (member(values), ...);
  }
  /// Whether all input was read, and nothing was missing.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  template <class T>
  void member(T& one) {
    if (may_end_ && rest_.empty()) return;  // the writer's version does not have it
    value(one);
  }
  template <Plain T>
  void value(T& plain) {
    const std::string_view bytes = piece(sizeof(T));
    if (bytes.empty()) return;
    if constexpr (std::is_same_v<T, bool>) {
      plain = bytes[0] != 0;
    } else {
      std::memcpy(&plain, bytes.data(), sizeof(T));
    }
  }
  void value(std::string& text) { text = this->text(); }
  template <class T>
  void value(std::vector<T>& list) {
    for (std::uint64_t left = count(); left > 0 && good_; --left) value(list.emplace_back());
  }
  template <class T>
  void value(std::map<std::string, T>& map) {
    for (std::uint64_t left = count(); left > 0 && good_; --left) {
      std::string name;
      value(name);
      value(map[name]);
    }
  }
  template <class T>
  void value(std::optional<T>& maybe) {
    bool there = false;
    value(there);
    if (there) value(maybe.emplace());
  }
  template <class T>
    requires(std::is_class_v<T>)
  void value(T& whole) {
    if (layout_ == Layout::fixed) return fields(*this, whole);
    std::uint32_t size = 0;
    value(size);
    Reader members(piece(size), layout_);
    members.may_end_ = true;
    if (good_) fields(members, whole);
    good_ = good_ && members.good_;
  }

  /// The next `bytes` bytes; empty, and decoding fails, if fewer are left.
  std::string_view piece(std::uint64_t bytes) {
    good_ = good_ && bytes <= rest_.size();
    const std::string_view found = rest_.substr(0, good_ ? bytes : 0);
    rest_.remove_prefix(found.size());
    return found;
  }
  /// A number of elements; 0, and decoding fails, if more elements are announced than bytes are left.
  std::uint64_t count() {
    std::uint64_t count = 0;
    value(count);
    good_ = good_ && count <= rest_.size();  // each takes at least a byte
    return good_ ? count : 0;
  }
  std::string_view text() { return piece(count()); }

  std::string_view rest_;
  Layout layout_;
  bool good_ = true;
  bool may_end_ = false;  ///< the members of a structure: the last ones may be missing
};

/// The bytes of a value.
template <class T>
std::string encode(const T& value, Layout layout = Layout::extensible) {
  Writer writer(layout);
  writer(value);
  return writer.take();
}

/// Returns nothing unless the bytes are exactly one value.
template <class T>
std::optional<T> decode(std::string_view bytes, Layout layout = Layout::extensible) {
  Reader reader(bytes, layout);
  T value;
  reader(value);
  if (!reader.complete()) return std::nullopt;
  return value;
}

}  // namespace caisson::session::codec
