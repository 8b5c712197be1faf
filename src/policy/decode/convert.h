// Converts a document's node, or text on a command line, to a field's value.
#pragma once

#include <expected>

#include "policy/document/document.h"
#include "policy/fields.h"

namespace caisson::policy {

/// Why a value does not fit its field.
struct Mismatch {
  std::string expected;
  std::string got;
  std::string hint;
  std::string below;  ///< the invalid part of the value: "[2]", "[0].size", `."/tmp".size`
  int line = 0;
  std::string reason = {};  ///< if not empty, the whole reason, instead of `expected` and `got`
};

template <class T>
using Converted = std::expected<T, Mismatch>;

/// Converts `node`; checkValue() checks the result. Strict: no truthy strings, no numbers in quotes except sizes,
/// durations, ports and descriptors. "unset" or null clears an optional field; `~` in host paths is expanded.
Converted<Value> fromNode(const Field& field, const Node& node);

/// Whether the entries of the list can be changed one by one by a key: tmpfs by path, credentials by name.
bool hasKeyedEntries(const Field& field);

/// Changes or adds the entries that the table `node` names; other entries of `inherited` stay. Only if
/// hasKeyedEntries().
Converted<Value> fromEntries(const Field& field, const Node& node, const Value& inherited);

/// The key of the entry at `index`, or "" if the list has none there.
std::string entryKey(const Value& value, std::size_t index);

/// An entry's key as a part of a key path: `."/tmp"`.
std::string entrySuffix(std::string_view key);

/// Parses `text`. A list gets the text as its only element; "[]" is the empty list, "unset" clears an optional key. A
/// tmpfs is written "/path:64M" or "/path:64M:exec", an assignment "NAME=value".
Converted<Value> fromText(const Field& field, std::string_view text);

/// Appends the elements of `addition` to `value`, which are of the same list type; an unset `value` becomes `addition`.
/// A name that an assignment repeats gets the new value.
Value concatenated(Value value, Value addition);

/// Whether the field holds several elements: a list or assignments.
bool isList(const Field& field);

/// What the field accepts, for messages: "a size in bytes or a string like \"512M\"".
std::string expectation(const Field& field);

}  // namespace caisson::policy
