#include "host/toolchains.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>

#include "base/path_parts.h"
#include "base/text.h"
#include "policy/rules/secret_files.h"
#include "sys/descriptor_path.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

using plan::Toolchain;

/// A directory of PATH, below a home, and the toolchain that it belongs to. `*` stands for one name.
struct Layout {
  std::string_view manager;
  std::string_view programs;  ///< the directory in PATH
  /// Names in the directory above it that are shown; empty: only the directory itself is.
  std::span<const std::string_view> shown;
};

constexpr std::string_view kPrefix[] = {"bin", "include", "lib", "libexec", "share"};
constexpr std::string_view kJava[] = {"bin", "conf", "include", "jmods", "legal", "lib", "release"};
constexpr std::string_view kGo[] = {"VERSION", "bin", "go.env", "lib", "pkg", "src"};

constexpr Layout kLayouts[] = {
    {"nvm", ".nvm/versions/node/*/bin", kPrefix},
    {"fnm", ".local/share/fnm/node-versions/*/installation/bin", kPrefix},
    {"pyenv", ".pyenv/versions/*/bin", kPrefix},
    {"uv", ".local/share/uv/python/*/bin", kPrefix},
    {"sdkman", ".sdkman/candidates/java/*/bin", kJava},
    {"sdkman", ".sdkman/candidates/*/*/bin", kPrefix},
    {"go", "sdk/*/bin", kGo},
    {"go", ".local/go/bin", kGo},
    {"go", "go/bin", {}},
    {"asdf", ".asdf/installs/*/*/bin", kPrefix},
    {"mise", ".local/share/mise/installs/*/*/bin", kPrefix},
    {"cargo", ".cargo/bin", {}},
    {"bun", ".bun/bin", {}},
    {"deno", ".deno/bin", {}},
};
/// Directories of PATH whose programs only start those of a toolchain that a setting names.
constexpr std::string_view kRustupProxies = ".cargo/bin";
constexpr std::string_view kPyenvShims = ".pyenv/shims";
constexpr std::size_t kMaxToolchains = 32;
/// Directories of PATH that need no look: they never lead into a home.
constexpr std::string_view kSystemPrograms[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",  "/usr/bin",
                                                "/sbin",           "/bin",           "/usr/games", "/usr/local/games"};

bool matches(std::string_view path, std::string_view pattern) {
  const std::vector<std::string_view> names = split(path, '/'), wanted = split(pattern, '/');
  if (names.size() != wanted.size()) return false;
  for (std::size_t at = 0; at < names.size(); ++at) {
    if (wanted[at] != "*" && wanted[at] != names[at]) return false;
  }
  return true;
}

std::string canonicalOrEmpty(const std::string& path) {
  const sys::Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  return fd ? sys::canonicalPath(fd.get()).value_or("") : std::string();
}

bool exists(const std::string& path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0 && (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode));
}

/// The first line of a small file.
std::string firstLineOf(const std::string& path) {
  const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char text[4096];
  const ssize_t got = fd ? ::read(fd.get(), text, sizeof(text)) : -1;
  if (got <= 0) return {};
  const std::string_view all(text, static_cast<std::size_t>(got));
  return std::string(all.substr(0, all.find('\n')));
}

std::string defaultRustToolchain(const std::string& rustup) {
  const sys::Fd fd(::open((rustup + "/settings.toml").c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char text[16384];
  const ssize_t got = fd ? ::read(fd.get(), text, sizeof(text)) : -1;
  if (got <= 0) return {};
  constexpr std::string_view kKey = "default_toolchain = \"";
  const std::string_view all(text, static_cast<std::size_t>(got));
  const std::size_t at = all.find(kKey);
  if (at == std::string_view::npos) return {};
  const std::string_view value = all.substr(at + kKey.size());
  return std::string(value.substr(0, value.find('"')));
}

/// Whether this is a plain name that stays in its directory.
bool isName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

/// Directories of a toolchain with files of its user: their entries are judged by name. `*` stands for any name, a
/// name that ends in `*` for its beginning. Deeper directories hold what packages brought along.
constexpr std::string_view kJudged[] = {
    "",
    "bin",
    "conf",
    "conf/management",
    "etc",
    "lib",
    "lib/management",
    "lib/node_modules",
    "lib/node_modules/*",
    "lib/node_modules/@*/*",
    "lib/python*",
    "lib/python*/distutils",
    "lib/python*/site-packages",
    "lib/python*/site-packages/setuptools/_distutils",
    "libexec",
    "share",
};
/// Configuration of package managers that may hold passwords, beside what is a secret anywhere.
constexpr std::string_view kConfiguration[] = {
    "_netrc", "auth.json", "credentials", "credentials.toml", "distutils.cfg", "jmxremote.password",
    "npmrc",  "pip.conf",  "pip.ini",     "pydistutils.cfg",  "settings.xml",
};
constexpr std::size_t kMaxJudged = 512;  ///< directories of one toolchain; others are hidden

bool matchesName(std::string_view name, std::string_view pattern) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

/// Whether a directory at this path in a toolchain is judged, or leads to one that is.
bool leadsToJudged(std::string_view path) {
  const std::vector<std::string_view> names = split(path, '/');
  return std::ranges::any_of(kJudged, [&](std::string_view one) {
    const std::vector<std::string_view> wanted = split(one, '/');
    return names.size() <= wanted.size() &&
           std::ranges::equal(names, std::span(wanted).first(names.size()), matchesName);
  });
}

bool isSecretInToolchain(std::string_view name) {
  // .pem and .key are certificates of authorities here, and secrets.py a module: programs need them.
  const policy::SecretJudgement judged = policy::judgeSecret("/", name, false);
  const bool settings =
      judged.kind == policy::SecretKind::environment || judged.kind == policy::SecretKind::package_manager;
  return judged.verdict == policy::SecretVerdict::hide ||
         (judged.verdict == policy::SecretVerdict::by_content && settings && !judged.pattern.empty()) ||
         std::ranges::find(kConfiguration, lowered(name)) != std::end(kConfiguration);
}

/// Finds the secrets in what is shown of a toolchain.
class SecretFinder {
 public:
  explicit SecretFinder(Toolchain& toolchain) : toolchain_(toolchain), prefix_(parentOf(toolchain.programs)) {}

  void find() {
    for (const std::string& path : toolchain_.shown) judge(path);
  }

 private:
  /// `path`: a directory, or a file that is shown by itself.
  void judge(const std::string& path) {
    if (++judged_ > kMaxJudged) return toolchain_.hidden.push_back(path);
    const sys::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) {
      if (errno != ENOTDIR) toolchain_.hidden.push_back(path);
      return;
    }
    std::vector<std::string> below;
    alignas(dirent64) char buffer[4096];
    for (long size; (size = ::syscall(SYS_getdents64, directory.get(), buffer, sizeof(buffer))) > 0;) {
      for (long at = 0; at < size;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
        at += entry->d_reclen;
        const std::string_view name = entry->d_name;
        if (name == "." || name == "..") continue;
        const std::string whole = path + "/" + std::string(name);
        const bool link = entry->d_type == DT_LNK;
        if (!link && isSecretInToolchain(name)) {
          toolchain_.hidden.push_back(whole);
        } else if (!link && entry->d_type != DT_REG && leadsToJudged(whole.substr(prefix_.size() + 1))) {
          below.push_back(whole);
        }
      }
    }
    for (const std::string& one : below) judge(one);
  }

  Toolchain& toolchain_;
  std::string prefix_;
  std::size_t judged_ = 0;
};

/// Go's settings for all users: a proxy's address may hold a password.
bool holdsPassword(const std::string& path) {
  const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char text[16384];
  const ssize_t got = fd ? ::read(fd.get(), text, sizeof(text)) : -1;
  if (got < 0 || got == static_cast<ssize_t>(sizeof(text))) return true;
  const std::string_view all(text, static_cast<std::size_t>(got));
  for (std::size_t at = all.find("://"); at != std::string_view::npos; at = all.find("://", at + 3)) {
    const std::string_view authority = all.substr(at + 3, all.find_first_of("/,|\n \"'", at + 3) - at - 3);
    if (authority.find('@') != std::string_view::npos) return true;
  }
  return false;
}

class Finder {
 public:
  Finder(const std::vector<std::string>& homes, const std::map<std::string, std::string>& environment)
      : homes_(homes), environment_(environment) {}

  /// Adds the toolchain that `directory`, an entry of PATH, belongs to, if any.
  void add(const std::string& directory) {
    const std::string real = canonicalOrEmpty(directory);
    for (const std::string& home : homes_) {
      if (!real.starts_with(home + "/")) continue;
      const std::string below = real.substr(home.size() + 1);
      if (below == kRustupProxies) addRust(home);
      if (below == kPyenvShims) addPython(home);
      const auto* layout =
          std::ranges::find_if(kLayouts, [&](const Layout& one) { return matches(below, one.programs); });
      if (layout != std::end(kLayouts)) addLayout(layout->manager, real, layout->shown);
    }
  }
  std::vector<Toolchain> take() { return std::move(found_); }

 private:
  void addLayout(std::string_view manager, const std::string& programs, std::span<const std::string_view> shown) {
    if (found_.size() >= kMaxToolchains || std::ranges::find(found_, programs, &Toolchain::programs) != found_.end())
      return;
    Toolchain toolchain{.manager = std::string(manager), .programs = programs, .shown = {}};
    const std::string prefix = parentOf(programs);
    for (const std::string_view name : shown) {
      const std::string path = prefix + "/" + std::string(name);
      if (exists(path) && (name != "go.env" || !holdsPassword(path))) toolchain.shown.push_back(path);
    }
    if (shown.empty()) toolchain.shown.push_back(programs);
    SecretFinder(toolchain).find();
    found_.push_back(std::move(toolchain));
  }

  [[nodiscard]] std::string variable(const std::string& name) const {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  }

  /// The programs in ~/.cargo/bin choose a toolchain by settings that the sandbox does not show, so the directory of
  /// the chosen toolchain is put into PATH instead.
  void addRust(const std::string& home) {
    const std::string rustup = home + "/.rustup";
    std::string name = variable("RUSTUP_TOOLCHAIN");
    if (name.empty()) name = defaultRustToolchain(rustup);
    if (!isName(name)) return;
    const std::string programs = canonicalOrEmpty(rustup + "/toolchains/" + name + "/bin");
    if (programs.starts_with(home + "/") && matches(programs.substr(home.size() + 1), ".rustup/toolchains/*/bin"))
      addLayout("rustup", programs, kPrefix);
  }

  void addPython(const std::string& home) {
    const std::string own = variable("PYENV_VERSION");
    const std::string names = own.empty() ? firstLineOf(home + "/.pyenv/version") : own;
    for (const std::string_view name : split(names, ':')) {
      if (!isName(std::string(name))) continue;
      const std::string programs = canonicalOrEmpty(home + "/.pyenv/versions/" + std::string(name) + "/bin");
      if (programs.starts_with(home + "/") && matches(programs.substr(home.size() + 1), ".pyenv/versions/*/bin"))
        addLayout("pyenv", programs, kPrefix);
    }
  }

  const std::vector<std::string>& homes_;
  const std::map<std::string, std::string>& environment_;
  std::vector<Toolchain> found_;
};

}  // namespace

std::vector<Toolchain> findToolchains(const std::vector<std::string>& homes,
                                      const std::map<std::string, std::string>& environment) {
  const auto path = environment.find("PATH");
  if (path == environment.end()) return {};
  Finder finder(homes, environment);
  for (const std::string_view directory : split(path->second, ':')) {
    if (std::ranges::find(kSystemPrograms, directory) != std::end(kSystemPrograms)) continue;
    if (directory.starts_with('/')) finder.add(std::string(directory));
  }
  return finder.take();
}

}  // namespace caisson::host
