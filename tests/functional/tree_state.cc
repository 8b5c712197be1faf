#include "functional/tree_state.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstring>
#include <functional>

#include "support/temp_dir.h"

namespace caisson::test {
namespace {

using State = std::map<std::string, std::string>;

std::string describe(const std::string& path, const struct stat& status) {
  std::string text = std::to_string(status.st_ino) + " mode " + std::to_string(status.st_mode) + " owner " +
                     std::to_string(status.st_uid) + ":" + std::to_string(status.st_gid) + " links " +
                     std::to_string(status.st_nlink) + " size " + std::to_string(status.st_size) + " modified " +
                     std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) +
                     " changed " + std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
  if (S_ISREG(status.st_mode)) text += " content " + std::to_string(std::hash<std::string>{}(readFile(path)));
  if (S_ISLNK(status.st_mode)) {
    std::array<char, PATH_MAX> target{};
    if (readlink(path.c_str(), target.data(), target.size() - 1) > 0) text += std::string(" to ") + target.data();
  }
  return text;
}

void addTree(const std::string& root, const std::string& below, State& state) {
  const std::string path = root + "/" + below;
  DIR* stream = opendir(path.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    const std::string name = below + entry->d_name;
    struct stat status{};
    if (lstat((root + "/" + name).c_str(), &status) != 0) continue;
    state[name] = describe(root + "/" + name, status);
    if (S_ISDIR(status.st_mode)) addTree(root, name + "/", state);
  }
  closedir(stream);
}

}  // namespace

State treeState(const std::string& root) {
  State state;
  addTree(root, "", state);
  return state;
}

std::string differences(const State& before, const State& after) {
  std::string text;
  for (const auto& [name, entry] : before) {
    const auto now = after.find(name);
    if (now == after.end()) {
      text += "gone: " + name + "\n";
    } else if (now->second != entry) {
      text += "changed: " + name + "\n  was " + entry + "\n  is  " + now->second + "\n";
    }
  }
  for (const auto& [name, entry] : after) {
    if (!before.contains(name)) text += "new: " + name + " " + entry + "\n";
  }
  return text;
}

}  // namespace caisson::test
