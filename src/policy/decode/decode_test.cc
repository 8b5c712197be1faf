#include "policy/decode/decode.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "policy/fields.h"
#include "policy/profiles/profiles.h"
#include "support/conforms.h"

namespace caisson::policy {

namespace {

Result<Policy> toml(std::string_view text) { return parse(text, Format::toml, "p.toml"); }

/// Policy files in a temporary directory.
class Files {
 public:
  Files() : directory_(std::filesystem::temp_directory_path() / ("caisson-decode-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~Files() {
    for (const std::string& name : names_) std::filesystem::remove(directory_ / name);
    std::filesystem::remove(directory_);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  std::string write(const std::string& name, std::string_view text) {
    names_.push_back(name);
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

 private:
  std::filesystem::path directory_;
  std::vector<std::string> names_;
};

}  // namespace

TEST(Decode, FileInheritsBash) {
  const auto policy = toml("");
  ASSERT_TRUE(policy) << policy.error().message();
  Policy expected = *builtin("bash");
  expected.name = "p";
  EXPECT_TRUE(sameSettings(*policy, expected));
  EXPECT_TRUE(policy->widenings.empty());
}

TEST(Decode, TheThreeFormatsMakeTheSamePolicy) {
  CONFORMS("R-POLICY-14");
  const auto a = toml(
      "name = 'x'\n[resources]\nmemory = '256M'\nwall_seconds = '2m'\n[filesystem]\nworkspace.mode = 'ro'\n"
      "tmpfs = [{path = '/tmp', size = 1048576, exec = true}]\n[network]\nallowed_ports = [443, '8000-8010']\n"
      "[environment.set]\nA = 'b'\n");
  const auto b = parse(
      R"({"name": "x", "resources": {"memory": 268435456, "wall_seconds": 120},
          "filesystem": {"workspace": {"mode": "ro"}, "tmpfs": [{"path": "/tmp", "size": "1M", "exec": true}]},
          "network": {"allowed_ports": ["443", "8000-8010"]}, "environment": {"set": {"A": "b"}}})",
      Format::json, "p.json");
  const auto c = parse(
      "name: x\nresources: {memory: 256MiB, wall_seconds: 120.0}\nfilesystem:\n  workspace: {mode: ro}\n"
      "  tmpfs:\n    - {path: /tmp, size: 1024k, exec: true}\nnetwork: {allowed_ports: [443, 8000-8010]}\n"
      "environment: {set: {A: b}}\n",
      Format::yaml, "p.yaml");
  ASSERT_TRUE(a) << a.error().message();
  ASSERT_TRUE(b) << b.error().message();
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_TRUE(sameSettings(*a, *b));
  EXPECT_TRUE(sameSettings(*a, *c));
  EXPECT_EQ(a->resources.memory, 256 * kMiB);
  EXPECT_EQ(a->filesystem.tmpfs.size(), 1U);
}

TEST(Decode, ListReplacesTheInheritedList) {
  const auto base = parse("extends = 'cargo'", Format::toml, "p.toml");
  ASSERT_TRUE(base) << base.error().message();
  ASSERT_GT(base->filesystem.tmpfs.size(), 1U);
  const auto one = parse("extends = 'cargo'\n[[filesystem.tmpfs]]\npath = '/target'\nsize = '1M'\nexec = true\n",
                         Format::toml, "p.toml");
  ASSERT_TRUE(one) << one.error().message();
  ASSERT_EQ(one->filesystem.tmpfs.size(), 1U);
  EXPECT_EQ(one->filesystem.tmpfs[0].path, "/target");
}

TEST(Decode, TableInPlaceOfListChangesEntriesByKey) {
  CONFORMS("R-POLICY-15");
  const Policy base = *builtin("bash");
  const auto changed = toml("filesystem.tmpfs.'/home/sandbox/'.size = '1G'\nfilesystem.tmpfs.'/scratch'.size = '8M'\n");
  ASSERT_TRUE(changed) << changed.error().message();
  std::vector<Tmpfs> expected = base.filesystem.tmpfs;
  std::ranges::find(expected, "/home/sandbox", &Tmpfs::path)->size = kGiB;
  expected.push_back({"/scratch", 8 * kMiB});
  EXPECT_EQ(changed->filesystem.tmpfs, expected);
  ASSERT_EQ(changed->widenings.size(), 1U);
  EXPECT_EQ(changed->widenings[0].key, "filesystem.tmpfs");
  const auto narrower = toml("[filesystem.tmpfs.'/tmp']\nsize = '1M'\nexec = false\n");
  ASSERT_TRUE(narrower) << narrower.error().message();
  EXPECT_EQ(narrower->filesystem.tmpfs.size(), base.filesystem.tmpfs.size());
  EXPECT_TRUE(narrower->widenings.empty());
}

TEST(Decode, EntriesByKeyHaveTheSameShapeInEveryFormat) {
  const auto a = toml("filesystem.tmpfs.'/tmp'.size = '8M'");
  const auto b = parse(R"({"filesystem": {"tmpfs": {"/tmp": {"size": "8M"}}}})", Format::json, "p.json");
  const auto c = parse("filesystem:\n  tmpfs:\n    /tmp: {size: 8M}\n", Format::yaml, "p.yaml");
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->filesystem.tmpfs[0].size, 8 * kMiB);
  EXPECT_EQ(a->filesystem.tmpfs.size(), builtin("bash")->filesystem.tmpfs.size());
  EXPECT_TRUE(sameSettings(*a, *b));
  EXPECT_TRUE(sameSettings(*a, *c));
}

TEST(Decode, CredentialsChangeByName) {
  Files files;
  files.write("base.toml",
              "network.mode = 'proxy'\n"
              "network.credentials = [{name = 'api', host = 'api.example.org', secret_env = 'KEY'},\n"
              "                       {host = 'b.example.org', secret_env = 'B'}]\n");
  const auto policy = load(files.write("top.toml",
                                       "extends = 'base.toml'\n[network.credentials]\napi.header = 'X-Key'\n"
                                       "'b.example.org'.host = 'c.example.org'\n"
                                       "new = {host = 'd.example.org', secret_env = 'D'}\n"));
  ASSERT_TRUE(policy) << policy.error().message();
  const auto& credentials = policy->network.credentials;
  ASSERT_EQ(credentials.size(), 3U);
  EXPECT_EQ(credentials[0].header, "X-Key");
  EXPECT_EQ(credentials[0].secret_env, "KEY");
  EXPECT_EQ(credentials[1].name, "b.example.org");
  EXPECT_EQ(credentials[1].host, "c.example.org");
  EXPECT_EQ(credentials[2].name, "new");
}

struct Refused {
  const char* text;
  const char* object;  ///< "file:line: key"
  const char* reason;  ///< a part of it
  const char* hint;    ///< a part of it
};

class DecodeRefuses : public testing::TestWithParam<Refused> {};

TEST_P(DecodeRefuses, NamingFileLineKeyAndExpectation) {
  CONFORMS("R-POLICY-2");
  const auto policy = toml(GetParam().text);
  ASSERT_FALSE(policy) << GetParam().text;
  const Error& error = policy.error();
  EXPECT_EQ(error.stage, Stage::policy);
  EXPECT_EQ(error.call, "decode");
  EXPECT_EQ(error.object, GetParam().object);
  EXPECT_NE(error.reason.find(GetParam().reason), std::string::npos) << error.message();
  EXPECT_NE(error.hint.find(GetParam().hint), std::string::npos) << error.message();
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, DecodeRefuses,
    testing::Values(
        // unknown key
        Refused{"\n[resources]\nmemroy = 1", "p.toml:3: resources.memroy", "unknown", "did you mean resources.memory?"},
        Refused{"memory = '1M'", "p.toml:1: memory", "unknown", "did you mean resources.memory?"},
        Refused{"[nonsense]\nx = 1", "p.toml:1: nonsense", "unknown", ""},
        Refused{"'resources.memory' = '1M'", "p.toml:1: resources.memory", "unknown", ""},
        Refused{"filesystem.tmpfs = [{path = '/tmp', sise = 1}]", "p.toml:1: filesystem.tmpfs[0].sise", "unknown key",
                "did you mean \"size\"?"},
        // entries changed by their key
        Refused{"[filesystem]\ntmpfs.'/hom/sandbox'.exec = true", "p.toml:2: filesystem.tmpfs.\"/hom/sandbox\"",
                "got \"/hom/sandbox\" without size", "inherited: \"/tmp\""},
        Refused{"[filesystem]\ntmpfs.'/tmp'.sise = 1", "p.toml:2: filesystem.tmpfs.\"/tmp\".sise", "unknown key",
                "did you mean \"size\"?"},
        Refused{"[filesystem]\n\ntmpfs.'/tmp'.path = '/x'", "p.toml:3: filesystem.tmpfs.\"/tmp\".path",
                "expected an entry without path", ""},
        Refused{"filesystem.tmpfs.'/tmp' = '1G'", "p.toml:1: filesystem.tmpfs.\"/tmp\"", "expected a table", ""},
        Refused{"\nfilesystem.tmpfs.'/tmp'.size = 0", "p.toml:2: filesystem.tmpfs.\"/tmp\".size", "above 0", ""},
        Refused{"\n[filesystem.tmpfs.'/usr/x/']\nsize = 1", "p.toml:2: filesystem.tmpfs.\"/usr/x/\".path",
                "the sandbox does not build itself", ""},
        Refused{"network.credentials.api.value = 'x'", "p.toml:1: network.credentials.\"api\"", "\"api\" without host",
                "nothing is inherited"},
        // wrong type
        Refused{"[process]\nallow_fork = 'true'", "p.toml:2: process.allow_fork", "expected true or false", ""},
        Refused{"[process]\nallow_fork = 1", "p.toml:2: process.allow_fork", "got the integer 1", ""},
        Refused{"resources = 1", "p.toml:1: resources", "expected a table", ""},
        Refused{"filesystem.read_only = '/opt'", "p.toml:1: filesystem.read_only", "expected a list of strings", ""},
        Refused{"filesystem.read_only = ['/opt',\n 3]", "p.toml:2: filesystem.read_only[1]", "expected a string", ""},
        Refused{"network.mode = 'prxy'", "p.toml:1: network.mode", "expected one of \"none\", \"proxy\", \"host\"",
                "write \"proxy\""},
        Refused{"process.max_processes = '10'", "p.toml:1: process.max_processes", "a whole number", ""},
        Refused{"environment.set.A = 1", "p.toml:1: environment.set.A", "expected a string", ""},
        Refused{"isolation.may_be_missing = ['seccomp']", "p.toml:1: isolation.may_be_missing[0]", "expected one of",
                ""},
        // impossible size
        Refused{"resources.memory = -1", "p.toml:1: resources.memory", "got the integer -1", ""},
        Refused{"resources.memory = 'abc'", "p.toml:1: resources.memory",
                "invalid size \"abc\": expected a number with a unit, for example 512M or 1.5G", ""},
        Refused{"resources.memory = '0%'", "p.toml:1: resources.memory", "invalid share \"0%\": expected 1% to 100%",
                ""},
        Refused{"filesystem.tmpfs = [{path = '/tmp', size = 'x'}]", "p.toml:1: filesystem.tmpfs[0].size",
                "invalid size \"x\"", ""},
        Refused{"resources.wall_seconds = 'soon'", "p.toml:1: resources.wall_seconds",
                "invalid duration \"soon\": expected a number with a unit, for example 90s, 30m or 2h", ""},
        Refused{"resources.memory = '512Q'", "p.toml:1: resources.memory", "unknown unit", ""},
        Refused{"resources.memory = ''", "p.toml:1: resources.memory", "empty", ""},
        Refused{"resources.memory = '99999999999999999999G'", "p.toml:1: resources.memory", "too large", ""},
        Refused{"resources.memory = 1.5", "p.toml:1: resources.memory", "expected a size", ""},
        Refused{"resources.memory = 1", "p.toml:1: resources.memory", "at least 4 MiB", ""},
        Refused{"filesystem.tmpfs = [{path = '/tmp', size = 0}]", "p.toml:1: filesystem.tmpfs[0].size", "above 0", ""},
        Refused{"resources.cpus = nan", "p.toml:1: resources.cpus", "expected a number", ""},
        Refused{"resources.cpus = inf", "p.toml:1: resources.cpus", "expected a number", ""},
        Refused{"resources.cpus = 0", "p.toml:1: resources.cpus", "above 0", ""},
        Refused{"resources.wall_seconds = '1y'", "p.toml:1: resources.wall_seconds", "unknown unit", ""},
        // above a ceiling
        Refused{"\nresources.memory = '3G'", "p.toml:2: resources.memory", "3 GiB is above the ceiling of 2 GiB",
                "caisson/config.toml"},
        // unknown syscall
        Refused{"syscalls.names = ['read', 'raed']", "p.toml:1: syscalls.names[1]", "the name of a system call", ""},
        // contradictory rule
        Refused{"[filesystem]\nread_only = ['/opt/']\nread_write = ['/srv', '//opt']",
                "p.toml:2: filesystem.read_only[0]", "also in filesystem.read_write", "one of the two"},
        // the file's own keys
        Refused{"format_version = 2", "p.toml:1: format_version", "expected the integer 1", ""},
        Refused{"extends = 'bsh'", "p.toml:1: extends", "built-in profile", "did you mean \"bash\"?"},
        Refused{"extends = 3", "p.toml:1: extends", "expected the name", ""},
        Refused{"extends = 'other.toml'", "p.toml:1: extends", "can only extend a built-in profile", ""}));

TEST(Decode, AnEmptyAllowlistAllowsNothing) {
  const auto policy = toml(
      "network.allowed_hosts = []\nprocess.allowed_executables = []\nsyscalls.names = []\ncommands.allowed_patterns = "
      "[]");
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_TRUE(policy->network.allowed_hosts.empty());
  ASSERT_TRUE(policy->process.allowed_executables.has_value());
  EXPECT_TRUE(policy->process.allowed_executables->empty());
  ASSERT_TRUE(policy->syscalls.names.has_value());
  EXPECT_TRUE(policy->syscalls.names->empty());
  ASSERT_TRUE(policy->commands.allowed_patterns.has_value());
}

TEST(Decode, UnsetClearsAnOptionalKey) {
  const auto policy = toml("extends = 'strict'\nsyscalls.names = 'unset'\nfilesystem.max_file_size = 'unset'");
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_FALSE(policy->syscalls.names.has_value());
  EXPECT_FALSE(policy->filesystem.max_file_size.has_value());
  EXPECT_EQ(policy->widenings.size(), 2U);
  EXPECT_FALSE(parse(R"({"resources": {"memory": null}})", Format::json, "p"));
  EXPECT_TRUE(parse(R"({"resources": {"threads": null}})", Format::json, "p"));
}

TEST(Decode, ExtendsFilesBesideTheOneThatNamesThem) {
  CONFORMS("R-POLICY-3", "R-POLICY-15");
  Files files;
  files.write("base.yaml", "extends: strict\nresources: {memory: 64M}\n");
  const std::string path = files.write("top.toml", "extends = 'base.yaml'\n[resources]\nopen_files = 64\n");
  const auto policy = load(path);
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->resources.memory, 64 * kMiB);
  EXPECT_EQ(policy->resources.open_files, 64U);
  EXPECT_FALSE(policy->process.allow_exec);
  EXPECT_EQ(policy->name, "top");
  // The base's widening over `strict` is still listed; narrowing open files is not a widening.
  ASSERT_EQ(policy->widenings.size(), 1U);
  EXPECT_EQ(policy->widenings[0], (Widening{"resources.memory", "50 MiB", "64 MiB"}));
}

TEST(Decode, ExtendsEndsOnACycle) {
  Files files;
  const std::string a = files.write("a.toml", "extends = './b.toml'");
  files.write("b.toml", "extends = 'a.toml'");
  const std::string own = files.write("own.toml", "extends = 'own.toml'");
  EXPECT_NE(load(a).error().reason.find("extends itself"), std::string::npos);
  EXPECT_NE(load(own).error().reason.find("extends itself"), std::string::npos);
  for (int i = 0; i < 12; ++i) {
    files.write("c" + std::to_string(i) + ".toml", "extends = 'c" + std::to_string(i + 1) + ".toml'");
  }
  const std::string last = files.write("c12.toml", "");
  EXPECT_NE(load(std::filesystem::path(last).parent_path() / "c0.toml").error().reason.find("more than 8"),
            std::string::npos);
  EXPECT_FALSE(load("policy.txt"));
}

TEST(Decode, TildeIsTheHomeDirectoryInHostPaths) {
  const char* before = std::getenv("HOME");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("HOME", "/home/me/", 1);
  const auto policy = toml(
      "filesystem.read_only = ['~/data', '~']\nfilesystem.workspace.path = '~/project'\n"
      "process.allowed_executables = ['~/.cargo/bin', 'git']\nnetwork.mode = 'proxy'\n"
      "network.credentials = [{host = 'a.example', secret_file = '~/.token'}]\n");
  Policy flags = *builtin("bash");
  const auto set = setKey(flags, "filesystem.read_write", "~/data");
  const auto other = toml("filesystem.read_only = ['/a',\n '~else/data']");
  const auto inside = toml("filesystem.denied = ['~/data']");
  ::unsetenv("HOME");
  const auto homeless = toml("filesystem.read_only = ['~/data']");
  if (before != nullptr) ::setenv("HOME", kept.c_str(), 1);
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->filesystem.read_only, (std::vector<std::string>{"/home/me/data", "/home/me"}));
  EXPECT_EQ(policy->filesystem.workspace.path, "/home/me/project");
  EXPECT_EQ(policy->process.allowed_executables, (std::vector<std::string>{"/home/me/.cargo/bin", "git"}));
  EXPECT_EQ(policy->network.credentials[0].secret_file, "/home/me/.token");
  ASSERT_TRUE(set);
  EXPECT_EQ(flags.filesystem.read_write, std::vector<std::string>{"/home/me/data"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().object, "p.toml:2: filesystem.read_only[1]");
  EXPECT_NE(other.error().hint.find("only your own home directory"), std::string::npos);
  ASSERT_FALSE(inside);
  EXPECT_NE(inside.error().hint.find("paths of the host only"), std::string::npos);
  ASSERT_FALSE(homeless);
  EXPECT_NE(homeless.error().hint.find("HOME is not set"), std::string::npos);
}

TEST(Decode, SetsKeysFromText) {
  Policy policy = *builtin("bash");
  EXPECT_TRUE(setKey(policy, "resources.memory", "256M"));
  EXPECT_TRUE(setKey(policy, "resources.cpus", "0.5"));
  EXPECT_TRUE(setKey(policy, "process.max_processes", "7"));
  EXPECT_TRUE(setKey(policy, "process.allow_fork", "false"));
  EXPECT_TRUE(setKey(policy, "filesystem.workspace.mode", "ro"));
  EXPECT_TRUE(setKey(policy, "filesystem.read_only", "/opt"));
  EXPECT_TRUE(appendKey(policy, "filesystem.read_only", "/srv"));
  EXPECT_TRUE(appendKey(policy, "environment.set", "A=b=c"));
  EXPECT_TRUE(appendKey(policy, "filesystem.tmpfs", "/scratch:8M:exec"));
  EXPECT_TRUE(appendKey(policy, "resources.cpu_affinity", "0"));
  EXPECT_TRUE(setKey(policy, "network.allowed_ports", "8080"));
  EXPECT_TRUE(setKey(policy, "resources.wall_seconds", "90"));
  EXPECT_TRUE(appendKey(policy, "process.allowed_executables", "/bin/cat"));
  EXPECT_EQ(policy.resources.memory, 256 * kMiB);
  EXPECT_EQ(policy.resources.cpus, 0.5);
  EXPECT_EQ(policy.process.max_processes, 7U);
  EXPECT_FALSE(policy.process.allow_fork);
  EXPECT_EQ(policy.filesystem.workspace.mode, WorkspaceMode::ro);
  EXPECT_EQ(policy.filesystem.read_only, (std::vector<std::string>{"/opt", "/srv"}));
  EXPECT_EQ(policy.environment.set.at("A"), "b=c");
  EXPECT_EQ(policy.filesystem.tmpfs.back(), (Tmpfs{"/scratch", 8 * kMiB, 16384, true}));
  EXPECT_EQ(policy.network.allowed_ports, (std::vector<std::string>{"8080"}));
  EXPECT_EQ(policy.resources.wall_seconds, 90);
  EXPECT_TRUE(setKey(policy, "filesystem.read_only", "[]"));
  EXPECT_TRUE(policy.filesystem.read_only.empty());
  EXPECT_TRUE(setKey(policy, "process.allowed_executables", "unset"));
  EXPECT_FALSE(policy.process.allowed_executables);
}

TEST(Decode, RejectsInvalidTextAndKeepsThePolicyUnchanged) {
  const std::pair<const char*, const char*> cases[] = {
      {"resources.memry", "1M"},
      {"resources", "1"},
      {"resources.memory", "lots"},
      {"process.allow_fork", "yes"},
      {"process.max_processes", "0"},
      {"process.max_processes", "1.5"},
      {"resources.cpus", "nan"},
      {"network.mode", "PROXY"},
      {"filesystem.read_only", "relative"},
      {"environment.set", "A"},
      {"filesystem.tmpfs", "/a:1M:suid"},
      {"network.allowed_ports", "0"},
  };
  for (const auto& [key, text] : cases) {
    Policy policy;
    const auto done = setKey(policy, key, text);
    ASSERT_FALSE(done) << key << "=" << text;
    EXPECT_TRUE(done.error().object.starts_with(key)) << done.error().message();
    EXPECT_TRUE(sameSettings(policy, Policy{})) << key;
  }
  Policy policy;
  EXPECT_FALSE(appendKey(policy, "resources.memory", "1G"));
}

TEST(Decode, AFlagThatWidensIsRecordedOnce) {
  CONFORMS("R-POLICY-3");
  Policy policy = *builtin("bash");
  ASSERT_TRUE(setKey(policy, "network.mode", "proxy"));
  ASSERT_TRUE(appendKey(policy, "network.allowed_hosts", "a.example"));
  ASSERT_TRUE(appendKey(policy, "network.allowed_hosts", "b.example"));
  ASSERT_EQ(policy.widenings.size(), 2U);
  EXPECT_EQ(policy.widenings[0], (Widening{"network.mode", "none", "proxy"}));
  EXPECT_EQ(policy.widenings[1], (Widening{"network.allowed_hosts", "[]", "[a.example, b.example]"}));
}

}  // namespace caisson::policy
