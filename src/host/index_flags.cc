#include "host/index_flags.h"

#include "base/path_parts.h"
#include "policy/rules/git_index.h"

namespace caisson::host {

std::set<std::string> unwatchedFiles(const std::function<std::optional<std::string>(const std::string& name)>& read) {
  const auto index = read("index");
  if (!index) return {};
  policy::IndexFlags flags = policy::readIndexFlags(*index);
  if (flags.unnamed) flags.unwatched.insert("?");
  if (flags.shared.empty()) return flags.unwatched;
  if (const auto shared = read("sharedindex." + flags.shared)) {
    flags.unwatched.merge(policy::readIndexFlags(*shared).unwatched);
  } else {
    flags.unwatched.insert("?");
  }
  return flags.unwatched;
}

std::set<std::string> unwatchedFiles(const sys::RootDir& root, const std::string& git_directory) {
  const auto info = root.stat(join(git_directory, "index"));
  if (info && info->size > policy::kMaxIndexBytes) return {"?"};  // a program can make it so large
  return unwatchedFiles([&](const std::string& name) -> std::optional<std::string> {
    auto text = root.readFile(join(git_directory, name), policy::kMaxIndexBytes);
    if (!text) return std::nullopt;
    return *std::move(text);
  });
}

}  // namespace caisson::host
