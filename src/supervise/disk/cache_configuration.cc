#include "supervise/disk/cache_configuration.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "supervise/disk/foreign_files.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::RootDir;

constexpr const char* kCache = "cache";

/// Compared without case: ext4 can make a directory case-insensitive.
constexpr std::string_view kConfiguration[] = {
    ".cargo",
    ".config",
    ".crates.toml",  // cargo's list of the programs in bin
    ".crates2.json",
    ".env",
    ".git",
    ".git-credentials",
    ".gitconfig",
    ".hg",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".yarnrc",
    ".yarnrc.yml",
    "_netrc",
    "auth.json",
    "auth.toml",
    "bin",
    "bunfig.toml",
    "ccache.conf",
    "config",
    "config.ini",
    "config.json",
    "config.toml",
    "config.yaml",
    "config.yml",
    "credential",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "env",
    "gitconfig",
    "go.env",
    "gradle.properties",
    "hooks",
    "init.d",
    "init.gradle",
    "npmrc",
    "pip.conf",
    "pip.ini",
    "pydistutils.cfg",
    "settings.json",
    "settings.xml",
    "stored_tokens",
    "token",
    "uv.toml",
};

/// Where tools keep git repositories, below the cache or a directory of it. `*` stands for any name.
using Pattern = std::span<const std::string_view>;
constexpr std::string_view kCargoDatabases[] = {"git", "db", "*"};
constexpr std::string_view kCargoCheckouts[] = {"git", "checkouts", "*", "*"};
constexpr std::string_view kCargoIndexes[] = {"registry", "index", "*"};
constexpr std::string_view kGoRepositories[] = {"cache", "vcs", "*"};
constexpr std::string_view kUvDatabases[] = {"git-v0", "db", "*"};
constexpr std::string_view kUvCheckouts[] = {"git-v0", "checkouts", "*", "*"};
constexpr Pattern kRepositories[] = {kCargoDatabases, kCargoCheckouts, kCargoIndexes,
                                     kGoRepositories, kUvDatabases,    kUvCheckouts};
/// Its directory holds repositories and nothing else.
constexpr std::string_view kPreCommit = "pre-commit";

constexpr std::size_t kMaxEntries = 65536;
constexpr std::uint64_t kMaxGitConfig = 65536;

bool isConfiguration(std::string_view name) { return std::ranges::binary_search(kConfiguration, lowered(name)); }
static_assert(std::ranges::is_sorted(kConfiguration));

struct Entry {
  std::string name;
  unsigned char type;  ///< DT_DIR ...
};

/// Some file systems do not report types.
unsigned char typeOf(int directory, const dirent64& entry) {
  struct stat status{};
  if (entry.d_type != DT_UNKNOWN || ::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return entry.d_type;
  return static_cast<unsigned char>(IFTODT(status.st_mode));
}

/// Directories of a cache are opened one by one, by names that getdents returned and without following links: a RootDir
/// for each costs five times the system calls, at every launch. Removal goes through RootDir.
Result<Fd> open(int parent, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd directory(::openat(parent, name.c_str(), kFlags));
  if (!directory && errno == EACCES) {  // a payload closed it to its owner
    const auto root = RootDir::share(parent, {.known_as = kCache});
    if (auto opened = root ? root->openToOwner(name) : fail(root.error()); !opened) return fail(opened.error());
    directory = Fd(::openat(parent, name.c_str(), kFlags));
  }
  if (!directory) return fail(sysError(Stage::state, "open", name, errno));
  return directory;
}

Result<std::vector<Entry>> list(int directory) {
  std::vector<Entry> entries;
  alignas(dirent64) char buffer[4096];
  for (;;) {
    const long size = ::syscall(SYS_getdents64, directory, buffer, sizeof(buffer));
    if (size < 0) return fail(sysError(Stage::state, "list", kCache, errno));
    if (size == 0) return entries;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      at += entry->d_reclen;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (entries.size() == kMaxEntries) return fail(sysError(Stage::state, "list", kCache, EFBIG));
      entries.push_back({std::string(name), typeOf(directory, *entry)});
    }
  }
}

Result<void> removeTree(int parent, const std::string& name) {
  const auto root = RootDir::share(parent, {.known_as = kCache});
  return root ? removeForeignTree(*root, name) : fail(root.error());
}

const Entry* find(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

/// Whether every line of a git configuration is one that names no command, no other file and no helper.
bool isPlainGitConfig(std::string_view text) {
  constexpr std::string_view kSections[] = {"[core]", "[remote \"", "[branch \"", "[submodule \"", "[extensions]"};
  constexpr std::string_view kKeys[] = {"active",
                                        "autocrlf",
                                        "bare",
                                        "fetch",
                                        "filemode",
                                        "ignorecase",
                                        "logallrefupdates",
                                        "merge",
                                        "objectformat",
                                        "precomposeunicode",
                                        "remote",
                                        "repositoryformatversion",
                                        "symlinks",
                                        "tagopt",
                                        "url"};
  for (std::string_view line : split(text, '\n')) {
    line = trimmed(line, " \t\r");
    if (line.empty()) continue;
    if (line.find('\\') != std::string_view::npos) return false;  // may continue on the next line
    if (line.starts_with('[')) {
      if (!line.ends_with(']') || line.find(']') != line.size() - 1) return false;
      if (std::ranges::none_of(kSections, [&](std::string_view one) { return line.starts_with(one); })) return false;
      continue;
    }
    const std::size_t equals = line.find('=');
    if (std::ranges::find(kKeys, lowered(trimmed(line.substr(0, equals), " \t"))) == std::end(kKeys)) return false;
    if (line.find("::") != std::string_view::npos) return false;  // ext::COMMAND
  }
  return true;
}

/// Whether the configuration of a repository is plain.
bool hasPlainGitConfig(int git) {
  const auto root = RootDir::share(git, {.known_as = kCache});
  const auto text = root ? root->readFile("config", kMaxGitConfig) : fail(root.error());
  return text && isPlainGitConfig(*text);
}

Result<void> cleanModules(int parent, const std::string& name, int git);

/// The repository `name`: a work tree with `.git`, or a bare one. Anything else is left alone.
Result<void> cleanRepository(int parent, const std::string& name, bool module = false) {
  auto git = open(parent, name);
  auto entries = git ? list(git->get()) : fail(git.error());
  if (!entries) return fail(entries.error());
  if (const Entry* inner = module ? nullptr : find(*entries, ".git"); inner != nullptr) {
    if (inner->type != DT_DIR) return removeTree(parent, name);  // it names a repository elsewhere
    git = open(git->get(), ".git");
    entries = git ? list(git->get()) : fail(git.error());
    if (!entries) return fail(entries.error());
  } else if (find(*entries, "HEAD") == nullptr) {
    return {};
  }
  for (const char* elsewhere : {"commondir", "config.worktree", "gitdir"})
    if (find(*entries, elsewhere) != nullptr) return removeTree(parent, name);
  if (find(*entries, "config") != nullptr && !hasPlainGitConfig(git->get())) return removeTree(parent, name);
  if (find(*entries, "hooks") != nullptr) {
    if (auto removed = removeTree(git->get(), "hooks"); !removed) return removed;
  }
  if (find(*entries, "modules") == nullptr) return {};
  return module ? removeTree(parent, name) : cleanModules(parent, name, git->get());
}

/// The submodules of a repository; those of one level are the usual ones, and one with others is removed.
Result<void> cleanModules(int parent, const std::string& name, int git) {
  const auto modules = open(git, "modules");
  const auto names = modules ? list(modules->get()) : fail(modules.error());
  if (!names) return fail(names.error());
  for (const Entry& one : *names) {
    const auto inner =
        one.type == DT_DIR ? open(modules->get(), one.name) : fail(sysError(Stage::state, "open", kCache, ENOTDIR));
    const auto entries = inner ? list(inner->get()) : fail(inner.error());
    if (!entries || find(*entries, "HEAD") == nullptr) return removeTree(parent, name);
    if (auto cleaned = cleanRepository(modules->get(), one.name, true); !cleaned) return cleaned;
  }
  return {};
}

/// Cleans the repositories that the rest of a pattern names below `parent`, of which these are the entries.
Result<void> cleanMatching(int parent, const std::vector<Entry>& entries, Pattern pattern) {
  for (const Entry& entry : entries) {
    if (entry.type == DT_REG || (pattern.front() != "*" && lowered(entry.name) != pattern.front())) continue;
    Result<void> done;
    if (entry.type != DT_DIR) {
      done = removeTree(parent, entry.name);  // a tool would follow a link
    } else if (pattern.size() == 1) {
      done = cleanRepository(parent, entry.name);
    } else {
      const auto below = open(parent, entry.name);
      const auto inner = below ? list(below->get()) : fail(below.error());
      done = inner ? cleanMatching(below->get(), *inner, pattern.subspan(1)) : fail(inner.error());
    }
    if (!done) return done;
  }
  return {};
}

/// A directory at the top of the cache, usually of one tool; or the cache itself. `entries`: what it contains, then
/// what is left.
Result<void> cleanDirectory(int directory, std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (!isConfiguration(entry.name)) continue;
    if (auto removed = removeTree(directory, entry.name); !removed) return removed;
  }
  std::erase_if(entries, [](const Entry& entry) { return isConfiguration(entry.name); });
  for (const Pattern pattern : kRepositories) {
    if (auto cleaned = cleanMatching(directory, entries, pattern); !cleaned) return cleaned;
  }
  return {};
}

Result<void> cleanTool(int data, const std::string& name) {
  const auto directory = open(data, name);
  auto entries = directory ? list(directory->get()) : fail(directory.error());
  if (!entries) return fail(entries.error());
  auto done = cleanDirectory(directory->get(), *entries);
  if (!done || lowered(name) != kPreCommit) return done;
  constexpr std::string_view kAny[] = {"*"};
  return cleanMatching(directory->get(), *entries, kAny);
}

}  // namespace

Result<void> removeConfiguration(int data) {
  const auto top = open(data, ".");
  auto entries = top ? list(top->get()) : fail(top.error());
  if (!entries) return fail(entries.error());
  if (auto cleaned = cleanDirectory(top->get(), *entries); !cleaned) return cleaned;
  for (const Entry& entry : *entries) {
    if (entry.type == DT_REG) continue;
    // A link would lead a tool past this.
    const auto done = entry.type == DT_DIR ? cleanTool(top->get(), entry.name) : removeTree(top->get(), entry.name);
    if (!done) return done;
  }
  return {};
}

}  // namespace caisson::supervise
