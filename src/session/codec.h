// Encodes values as bytes, between two processes of the same build of caisson.
//
// Not a stable format: it has neither names nor versions, and changes with the types. Decoding any bytes terminates,
// reads nothing beyond their end and allocates at most a small multiple of their length. A type takes part through a
// function fields(archive, value) that passes every member to the archive.
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

class Writer {
 public:
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
    fields(*this, whole);
  }

  std::string bytes_;
};

/// Reads what Writer wrote.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  /// Reads values in the order in which they were written; appends to lists and maps. Check complete() before use.
  template <class... T>
  void operator()(T&... values) {
    (value(values), ...);
  }
  /// Whether all input was read, and nothing was missing.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
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
    fields(*this, whole);
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
  bool good_ = true;
};

/// The bytes of a value.
template <class T>
std::string encode(const T& value) {
  Writer writer;
  writer(value);
  return writer.take();
}

/// Returns nothing unless the bytes are exactly one value.
template <class T>
std::optional<T> decode(std::string_view bytes) {
  Reader reader(bytes);
  T value;
  reader(value);
  if (!reader.complete()) return std::nullopt;
  return value;
}

}  // namespace caisson::session::codec
