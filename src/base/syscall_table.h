// The tables behind syscall_names.h. Constexpr, since the built-in filter is computed at compile time.
//
// They are the same whatever the compiler's headers know, and both are in every program: each filter can be checked for
// both architectures on either.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/native_architecture.h"

namespace caisson::syscall_table {

struct Entry {
  std::string_view name;
  int number = -1;
};

// One line per call, sorted by name.
#define CAISSON_SYSCALL(name, number) {#name, number},
inline constexpr Entry kByNameX86[] = {
#include "base/syscalls_x86_64.inc"
};
inline constexpr Entry kByNameAarch64[] = {
#include "base/syscalls_aarch64.inc"
};
#undef CAISSON_SYSCALL

template <std::size_t size>
consteval std::array<Entry, size> sortedByNumber(const Entry (&entries)[size]) {
  std::array<Entry, size> result{};
  std::ranges::copy(entries, result.begin());
  std::ranges::sort(result, {}, &Entry::number);
  return result;
}

inline constexpr auto kByNumberX86 = sortedByNumber(kByNameX86);
inline constexpr auto kByNumberAarch64 = sortedByNumber(kByNameAarch64);
static_assert(std::ranges::is_sorted(kByNameX86, {}, &Entry::name));
static_assert(std::ranges::is_sorted(kByNameAarch64, {}, &Entry::name));

constexpr std::span<const Entry> byName(Architecture architecture = kNative) {
  if (architecture == Architecture::x86_64) return kByNameX86;
  return kByNameAarch64;
}

constexpr std::span<const Entry> byNumber(Architecture architecture = kNative) {
  if (architecture == Architecture::x86_64) return kByNumberX86;
  return kByNumberAarch64;
}

/// As syscallNumber(), at compile time.
constexpr std::optional<int> numberOf(std::string_view name, Architecture architecture = kNative) {
  const std::span<const Entry> calls = byName(architecture);
  const auto found = std::ranges::lower_bound(calls, name, {}, &Entry::name);
  if (found == calls.end() || found->name != name) return std::nullopt;
  return found->number;
}

}  // namespace caisson::syscall_table
