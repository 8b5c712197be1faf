#include "host/executables.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/path_parts.h"
#include "plan/executables.h"
#include "plan/toolchains.h"
#include "sys/elf.h"
#include "sys/fd.h"
#include "sys/program_file.h"

namespace caisson::host {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kTriplet = "x86_64-linux-gnu";
constexpr std::string_view kRustHosts[] = {"x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"};
#else
constexpr std::string_view kTriplet = "aarch64-linux-gnu";
constexpr std::string_view kRustHosts[] = {"aarch64-unknown-linux-gnu", "aarch64-unknown-linux-musl"};
#endif
/// Linkers in a Rust toolchain. Since 1.90 rustc for x86_64 tells gcc to use them instead of the system's.
constexpr std::string_view kRustLinkers[] = {"gcc-ld/ld.lld", "rust-lld"};
constexpr std::size_t kMaxFiles = 20'000;  // below all listed directories together
constexpr int kDeepest = 12;

/// The files that lists are about: the host's, or those of another root.
class ProgramFiles {
 public:
  explicit ProgramFiles(const RootView* root = nullptr) : root_(root) {}

  /// The path without links; empty: absent.
  [[nodiscard]] std::string realPath(const std::string& path) const {
    return root_ == nullptr ? hostPath(path) : root_->realPath(path).value_or("");
  }
  /// A regular file at a path without links.
  [[nodiscard]] sys::Fd open(const std::string& real) const {
    if (root_ != nullptr) return root_->openFile(real);
    sys::Fd file(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    struct stat status;
    if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) return file;
    return {};
  }
  [[nodiscard]] bool isProgram(const std::string& path) const {
    return root_ == nullptr ? ::access(path.c_str(), X_OK) == 0 : root_->isProgram(path);
  }
  [[nodiscard]] bool isDirectory(const std::string& real) const {
    if (root_ != nullptr) return root_->isDirectory(real);
    struct stat status;
    const sys::Fd object(::open(real.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
    return object && ::fstat(object.get(), &status) == 0 && S_ISDIR(status.st_mode);
  }

 private:
  static std::string hostPath(const std::string& path);

  const RootView* root_;
};

std::string ProgramFiles::hostPath(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? real.get() : "";
}

/// The directories of the payload's PATH.
std::vector<std::string> searchPath(const policy::Policy& policy, std::string path) {
  if (const auto own = policy.environment.set.find("PATH"); own != policy.environment.set.end()) path = own->second;
  std::vector<std::string> directories;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) directories.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return directories;
}

/// Collects the dependencies of programs, each file once: loaders, libraries, and the linkers of a toolchain.
class Closure {
 public:
  explicit Closure(const ProgramFiles& all) : all_(all) {}

  void add(const std::string& real) {
    if (!seen_.insert(real).second) return;
    const sys::Fd fd = all_.open(real);
    if (!fd) return;
    const auto needs = sys::readProgram(fd.get());
    if (!needs || !needs->elf) return;
    if (!needs->interpreter.empty()) require(all_.realPath(needs->interpreter));
    for (const std::string& library : needs->libraries) require(find(library, parentOf(real), *needs));
    if (nameOf(real) == "rustc") addRustLinkers(parentOf(parentOf(real)));
  }
  /// Adds libgcc_s, which glibc loads by name when a thread is cancelled or unwound.
  void addUnwinder() { require(find("libgcc_s.so.1", "/", {})); }

  [[nodiscard]] const std::set<std::string>& files() const { return required_; }

 private:
  /// Only files of the toolchain itself: a link to another program does not make that executable.
  void addRustLinkers(const std::string& prefix) {
    for (const std::string_view host : kRustHosts) {
      for (const std::string_view linker : kRustLinkers) {
        const std::string real =
            all_.realPath(prefix + "/lib/rustlib/" + std::string(host) + "/bin/" + std::string(linker));
        if (real.starts_with(prefix + "/")) require(real);
      }
    }
  }

  void require(const std::string& real) {
    if (real.empty()) return;
    required_.insert(real);
    add(real);
  }

  [[nodiscard]] std::string find(const std::string& library, const std::string& origin,
                                 const sys::ProgramNeeds& needs) const {
    if (library.find('/') != std::string::npos) return all_.realPath(library);
    std::string path = needs.rpath + ":" + needs.runpath;
    for (const std::string_view variable : {"${ORIGIN}", "$ORIGIN"}) {
      for (std::size_t at; (at = path.find(variable)) != std::string::npos;) path.replace(at, variable.size(), origin);
    }
    const std::string triplet(kTriplet);
    for (const std::string& standard :
         {"/usr/local/lib/" + triplet, std::string("/usr/local/lib"), "/lib/" + triplet, "/usr/lib/" + triplet,
          std::string("/lib64"), std::string("/usr/lib64"), std::string("/lib"), std::string("/usr/lib")}) {
      path += ":" + standard;
    }
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find(':', begin), path.size());
      if (end > begin) {
        const std::string real = all_.realPath(path.substr(begin, end - begin) + "/" + library);
        if (!real.empty()) return real;
      }
      begin = end + 1;
    }
    return {};
  }

  const ProgramFiles& all_;
  std::set<std::string> seen_, required_;
};

/// Adds the dependencies of programs below a listed directory; false if there are too many files or levels.
bool addBelow(int parent, const char* name, const std::string& path, int depth, std::size_t& count, Closure& closure) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return true;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    ::close(fd);
    return true;
  }
  bool complete = true;
  while (const dirent* entry = complete ? ::readdir(stream) : nullptr) {
    const std::string_view child = entry->d_name;
    if (child == "." || child == "..") continue;
    if (++count > kMaxFiles || depth > kDeepest) {
      complete = false;
    } else if (entry->d_type == DT_DIR) {
      complete = addBelow(fd, entry->d_name, path + "/" + entry->d_name, depth + 1, count, closure);
    } else if (entry->d_type == DT_REG) {
      closure.add(path + "/" + entry->d_name);
    }
  }
  ::closedir(stream);
  return complete;
}

plan::Program observe(const std::string& entry, const std::vector<std::string>& directories,
                      const ProgramFiles& files) {
  plan::Program program;
  program.entry = entry;
  std::string path = entry;
  if (entry.find('/') == std::string::npos) {
    path.clear();
    for (const std::string& directory : directories) {
      const std::string candidate = directory + "/" + entry;
      if (!files.isProgram(candidate)) continue;
      path = candidate;
      break;
    }
  }
  program.real = path.empty() ? "" : files.realPath(path);
  if (program.real.empty()) return program;
  const std::string parent = files.realPath(parentOf(path));
  program.path = (parent == "/" ? "" : parent) + "/" + nameOf(path);
  program.directory = files.isDirectory(program.real);
  const sys::Fd file = files.open(program.real);
  const auto needs = file ? sys::readProgram(file.get()) : std::nullopt;
  if (needs && !needs->elf) program.script_for = files.realPath(needs->interpreter);
  if (needs && needs->elf) program.multi_call = sys::multiCallProgram(file.get());
  return program;
}

/// Adds the hard links to `blocked` files in the program directories. Symbolic links are not added: they lead to a path
/// that is blocked already.
void addOtherNames(const std::vector<std::string>& directories, std::vector<std::string>& blocked) {
  std::set<std::pair<dev_t, ino_t>> files;
  struct stat status;
  for (const std::string& path : blocked) {
    if (::stat(path.c_str(), &status) == 0 && status.st_nlink > 1) files.emplace(status.st_dev, status.st_ino);
  }
  if (files.empty()) return;
  std::set<std::string> looked;
  for (const std::string& directory : directories) {
    const std::string real = ProgramFiles().realPath(directory);
    if (real.empty() || !looked.insert(real).second) continue;
    const int fd = ::open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = fd < 0 ? nullptr : ::fdopendir(fd);
    if (stream == nullptr) continue;
    while (const dirent* entry = ::readdir(stream)) {
      if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN) continue;
      if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (files.contains({status.st_dev, status.st_ino})) blocked.push_back(real + "/" + entry->d_name);
    }
    ::closedir(stream);
  }
}

void observeUsr(plan::ExecutableFacts& facts) {
  for (const std::string base : {"", "local/"}) {
    const std::string directory = "/usr/" + base;
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = fd < 0 ? nullptr : ::fdopendir(fd);
    if (stream == nullptr) continue;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      char target[4096];
      const ssize_t length = ::readlinkat(fd, entry->d_name, target, sizeof(target));
      if (length > 0) {
        facts.usr[base + entry->d_name] = std::string(target, static_cast<std::size_t>(length));
      } else if (errno == EINVAL) {
        facts.usr[base + entry->d_name] = "";
      }
    }
    ::closedir(stream);
  }
}

void observeAllowed(const std::vector<std::string>& list, const std::vector<std::string>& directories,
                    const ProgramFiles& files, bool enter_directories, plan::ExecutableFacts& facts) {
  Closure closure(files);
  std::size_t count = 0;
  for (const std::string& entry : list) {
    plan::Program program = observe(entry, directories, files);
    if (program.directory && enter_directories) {
      program.too_large = !addBelow(AT_FDCWD, program.real.c_str(), program.real, 0, count, closure);
    } else if (!program.directory && !program.real.empty()) {
      closure.add(program.real);
    }
    facts.allowed.push_back(std::move(program));
  }
  if (!facts.allowed.empty()) closure.addUnwinder();
  facts.libraries.assign(closure.files().begin(), closure.files().end());
}

void observeBlocked(const policy::Process& process, const std::vector<std::string>& directories,
                    const ProgramFiles& files, plan::ExecutableFacts& facts) {
  std::vector<std::string> blocked = process.blocked_executables;
  if (!process.allowed_executables) {
    for (const std::string_view many : plan::kMultiCall) blocked.emplace_back(many);
  }
  for (const std::string& entry : blocked) {
    if (entry.find('/') != std::string::npos) {
      if (const std::string real = files.realPath(entry); !real.empty()) facts.blocked.push_back(real);
      continue;
    }
    for (const std::string& directory : directories) {  // every match, not only the first
      if (const std::string real = files.realPath(directory + "/" + entry); !real.empty())
        facts.blocked.push_back(real);
    }
  }
}

}  // namespace

plan::ExecutableFacts observeExecutables(const policy::Policy& policy, const std::vector<plan::Toolchain>& toolchains) {
  plan::ExecutableFacts facts;
  if (!plan::hasExecutableRules(policy)) return facts;
  const ProgramFiles files;
  const std::vector<std::string> directories = searchPath(policy, plan::programPath(toolchains));
  if (policy.process.allowed_executables) {
    observeUsr(facts);
    observeAllowed(*policy.process.allowed_executables, directories, files, true, facts);
  }
  observeBlocked(policy.process, directories, files, facts);
  addOtherNames(directories, facts.blocked);
  std::sort(facts.blocked.begin(), facts.blocked.end());
  facts.blocked.erase(std::unique(facts.blocked.begin(), facts.blocked.end()), facts.blocked.end());
  return facts;
}

plan::ExecutableFacts observeExecutables(const policy::Policy& policy, const RootView& root, const std::string& path) {
  plan::ExecutableFacts facts;
  if (!policy.process.allowed_executables) return facts;
  const ProgramFiles files(&root);
  const std::vector<std::string> directories = searchPath(policy, path);
  observeAllowed(*policy.process.allowed_executables, directories, files, false, facts);
  return facts;
}

}  // namespace caisson::host
