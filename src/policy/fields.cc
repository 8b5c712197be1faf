#include "policy/fields.h"

#include <type_traits>

namespace caisson::policy {

namespace {

// Names of choices, in the order of their enumerations in model.h.
constexpr std::string_view kLevels[] = {"none", "process", "full"};
constexpr std::string_view kTiers[] = {"namespaces", "landlock"};
constexpr std::string_view kWorkspaceModes[] = {"none", "ro", "rw", "overlay"};
constexpr std::string_view kNetworkModes[] = {"none", "proxy", "host"};
constexpr std::string_view kEnvironmentModes[] = {"clean", "listed", "inherit"};
constexpr std::string_view kSyscallModes[] = {"allowlist", "denylist"};
constexpr std::string_view kQuotaClasses[] = {"any", "hard"};
constexpr std::string_view kOverlayStores[] = {"automatic", "memory", "disk", "prefer_disk"};
constexpr std::string_view kInsideUsers[] = {"sandbox", "root"};
constexpr std::string_view kRuntimes[] = {"caisson", "runc", "crun", "runsc"};
constexpr std::string_view kToolchains[] = {"none", "auto"};
constexpr std::string_view kCeilingSets[] = {"standard", "dev"};
constexpr std::string_view kOptionalLayers[] = {"landlock", "landlock_scoping", "time_namespace", "cgroup",
                                                "hostname", "proc_subset",      "proc_bound",     "runtime"};

template <class E>
constexpr std::span<const std::string_view> kChoicesOf;
template <>
constexpr std::span<const std::string_view> kChoicesOf<Level> = kLevels;
template <>
constexpr std::span<const std::string_view> kChoicesOf<Tier> = kTiers;
template <>
constexpr std::span<const std::string_view> kChoicesOf<WorkspaceMode> = kWorkspaceModes;
template <>
constexpr std::span<const std::string_view> kChoicesOf<NetworkMode> = kNetworkModes;
template <>
constexpr std::span<const std::string_view> kChoicesOf<EnvironmentMode> = kEnvironmentModes;
template <>
constexpr std::span<const std::string_view> kChoicesOf<SyscallMode> = kSyscallModes;
template <>
constexpr std::span<const std::string_view> kChoicesOf<QuotaClass> = kQuotaClasses;
template <>
constexpr std::span<const std::string_view> kChoicesOf<OverlayStore> = kOverlayStores;
template <>
constexpr std::span<const std::string_view> kChoicesOf<InsideUser> = kInsideUsers;
template <>
constexpr std::span<const std::string_view> kChoicesOf<Runtime> = kRuntimes;
template <>
constexpr std::span<const std::string_view> kChoicesOf<Toolchains> = kToolchains;
template <>
constexpr std::span<const std::string_view> kChoicesOf<CeilingSet> = kCeilingSets;
template <>
constexpr std::span<const std::string_view> kChoicesOf<OptionalLayer> = kOptionalLayers;

template <class E>
std::string choiceName(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < kChoicesOf<E>.size() ? std::string(kChoicesOf<E>[index]) : "?";
}

template <class E>
E choiceOf(std::string_view name) {
  for (std::size_t index = 0; index < kChoicesOf<E>.size(); ++index) {
    if (kChoicesOf<E>[index] == name) return static_cast<E>(index);
  }
  return E{};
}

/// Converts a member of type T to and from a Value.
template <class T>
struct Carrier {
  using Held = std::conditional_t<std::is_enum_v<T>, std::string, T>;
  static Value out(const T& member) {
    if constexpr (std::is_enum_v<T>) {
      return choiceName(member);
    } else {
      return member;
    }
  }
  static T in(Value value) {
    Held* held = std::get_if<Held>(&value);
    if (held == nullptr) return T{};
    if constexpr (std::is_enum_v<T>) {
      return choiceOf<T>(*held);
    } else {
      return std::move(*held);
    }
  }
  static constexpr bool kOptional = false;
  using Element = T;
};

template <>
struct Carrier<std::vector<OptionalLayer>> {
  static Value out(const std::vector<OptionalLayer>& member) {
    std::vector<std::string> names;
    for (const OptionalLayer layer : member) names.push_back(choiceName(layer));
    return names;
  }
  static std::vector<OptionalLayer> in(Value value) {
    std::vector<OptionalLayer> layers;
    if (const auto* names = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& name : *names) layers.push_back(choiceOf<OptionalLayer>(name));
    }
    return layers;
  }
  static constexpr bool kOptional = false;
  using Element = OptionalLayer;
};

template <>
struct Carrier<std::vector<std::uint32_t>> {
  static Value out(const std::vector<std::uint32_t>& member) {
    return std::vector<std::uint64_t>(member.begin(), member.end());
  }
  static std::vector<std::uint32_t> in(Value value) {
    std::vector<std::uint32_t> result;
    if (const auto* numbers = std::get_if<std::vector<std::uint64_t>>(&value)) {
      for (const std::uint64_t number : *numbers) result.push_back(static_cast<std::uint32_t>(number));
    }
    return result;
  }
  static constexpr bool kOptional = false;
  using Element = std::uint32_t;
};

template <class T>
struct Carrier<std::optional<T>> {
  static Value out(const std::optional<T>& member) { return member ? Carrier<T>::out(*member) : Value{}; }
  static std::optional<T> in(Value value) {
    if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
    return Carrier<T>::in(std::move(value));
  }
  static constexpr bool kOptional = true;
  using Element = T;
};

template <class T>
constexpr std::span<const std::string_view> choicesFor() {
  if constexpr (std::is_enum_v<T>) {
    return kChoicesOf<T>;
  } else {
    return {};
  }
}

struct Extra {
  Syntax syntax = Syntax::any;
  Ceiling ceiling = Ceiling::none;
  std::string_view ranks = {};
};

// The braces of `extra` are parenthesized, or their commas would split the macro's arguments.
#define CAISSON_UNWRAP(...) __VA_ARGS__
#define FIELD(member, kind, widens, extra, description)                                              \
  makeField<std::remove_cvref_t<decltype(std::declval<Policy&>().member)>>(                          \
      #member, description, Kind::kind, Widens::widens, Extra CAISSON_UNWRAP extra,                  \
      [](const Policy& policy) -> Value {                                                            \
        return Carrier<std::remove_cvref_t<decltype(policy.member)>>::out(policy.member);            \
      },                                                                                             \
      [](Policy& policy, Value value) {                                                              \
        policy.member = Carrier<std::remove_cvref_t<decltype(policy.member)>>::in(std::move(value)); \
      }),

template <class Member>
constexpr Field makeField(std::string_view key, std::string_view description, Kind kind, Widens widens, Extra extra,
                          Value (*get)(const Policy&), void (*put)(Policy&, Value)) {
  using Element = typename Carrier<Member>::Element;
  return Field{.key = key,
               .description = description,
               .kind = kind,
               .optional = Carrier<Member>::kOptional,
               .widens = widens,
               .syntax = extra.syntax,
               .ceiling = extra.ceiling,
               .choices = choicesFor<Element>(),
               .ranks = extra.ranks,
               .get = get,
               .put = put};
}

// clang-format off
constexpr Field kFields[] = {
#include "policy/fields.inc"
};
// clang-format on

#undef FIELD
#undef CAISSON_UNWRAP

}  // namespace

std::string_view name(TmpfsAccess access) {
  switch (access) {
    case TmpfsAccess::rw: return "rw";
    case TmpfsAccess::wo: return "wo";
    case TmpfsAccess::ro: return "ro";
  }
  return "";
}

std::optional<TmpfsAccess> tmpfsAccessNamed(std::string_view text) {
  for (const TmpfsAccess access : {TmpfsAccess::rw, TmpfsAccess::wo, TmpfsAccess::ro})
    if (text == name(access)) return access;
  return std::nullopt;
}

std::string_view name(DirectoryStore store) {
  switch (store) {
    case DirectoryStore::memory: return "memory";
    case DirectoryStore::disk: return "disk";
    case DirectoryStore::prefer_disk: return "prefer_disk";
  }
  return "";
}

std::optional<DirectoryStore> directoryStoreNamed(std::string_view text) {
  for (const DirectoryStore store : {DirectoryStore::memory, DirectoryStore::disk, DirectoryStore::prefer_disk})
    if (text == name(store)) return store;
  return std::nullopt;
}

std::span<const Field> fields() { return kFields; }

const Field* findField(std::string_view key) {
  for (const Field& field : kFields) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

bool isSection(std::string_view key) {
  for (const Field& field : kFields) {
    if (field.key.size() > key.size() && field.key.starts_with(key) && field.key[key.size()] == '.') return true;
  }
  return false;
}

bool mayBeEncoded(const Field& field) {
  return (field.kind == Kind::text || field.kind == Kind::texts) && field.key.starts_with("filesystem.");
}

bool sameSettings(const Policy& a, const Policy& b) {
  for (const Field& field : kFields) {
    if (field.get(a) != field.get(b)) return false;
  }
  return true;
}

}  // namespace caisson::policy
